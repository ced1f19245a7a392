// What guarded programs carry: it releases a lost block, counts it, and reports.
//
// Nothing runs here until a block is lost. There is no lock, no table, no allocation: whether a block is lost stands in a
// variable of the function that owned it, and what is left to count are two numbers for each site.
//
//     CAULK_RT=off            count, but release nothing
//     CAULK_RT=verbose        a line on standard error for each block
//     CAULK_RT=report=FILE    at exit and on SIGUSR2, blocks and bytes by site as JSON; several words with commas
//
// A child of fork writes FILE.PID, a shared library FILE.NAME: each file has one writer.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct site {
  uint64_t blocks, bytes;
  void *release;
  const char *file, *function, *family, *name;
  uint32_t line, column, integer, unused;
};

extern struct site __start_caulk_sites[] __attribute__((weak, visibility("hidden")));
extern struct site __stop_caulk_sites[] __attribute__((weak, visibility("hidden")));
extern size_t malloc_usable_size(void *) __attribute__((weak));
extern char *secure_getenv(const char *) __attribute__((weak));

enum { unread, ready };

static int state, off, verbose;
static char path[4096];
static pid_t started;

// -- Text without stdio: this also runs in signal handlers --

struct out {
  int file;
  size_t used;
  char text[512];
};

static void flush(struct out *out) {
  for (size_t done = 0; done < out->used;) {
    ssize_t n = write(out->file, out->text + done, out->used - done);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      break;
    done += (size_t)n;
  }
  out->used = 0;
}

static void put(struct out *out, const char *text, size_t length) {
  for (size_t i = 0; i < length; i++) {
    if (out->used == sizeof out->text)
      flush(out);
    out->text[out->used++] = text[i];
  }
}

static void say(struct out *out, const char *text) { put(out, text, strlen(text)); }

static void number(struct out *out, uint64_t value) {
  char digits[20];
  size_t at = sizeof digits;
  do
    digits[--at] = (char)('0' + value % 10);
  while (value /= 10);
  put(out, digits + at, sizeof digits - at);
}

static void quoted(struct out *out, const char *text) {
  static const char hex[] = "0123456789abcdef";
  say(out, "\"");
  for (; *text; text++) {
    unsigned char c = (unsigned char)*text;
    if (c == '"' || c == '\\') {
      char pair[2] = {'\\', *text};
      put(out, pair, 2);
    } else if (c < 0x20) {
      char code[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};
      put(out, code, 6);
    } else {
      put(out, text, 1);
    }
  }
  say(out, "\"");
}

// -- The report --

static void report(void) {
  if (state != ready || !path[0] || &__start_caulk_sites[0] == &__stop_caulk_sites[0])
    return;
  int before = errno;
  // FILE, FILE.NAME in a shared library, FILE.PID in a child.
  char name[sizeof path + 64];
  size_t length = strlen(path);
  memcpy(name, path, length);
  const char *library = __start_caulk_sites[0].name;
  if (library[0] && strlen(library) < 40) {
    name[length++] = '.';
    memcpy(name + length, library, strlen(library));
    length += strlen(library);
  }
  if (getpid() != started) {
    char digits[20];
    size_t at = sizeof digits;
    for (uint64_t pid = (uint64_t)getpid(); pid; pid /= 10)
      digits[--at] = (char)('0' + pid % 10);
    name[length++] = '.';
    memcpy(name + length, digits + at, sizeof digits - at);
    length += sizeof digits - at;
  }
  name[length] = 0;
  struct out out = {.file = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)};
  if (out.file >= 0) {
    say(&out, "{\"tool\": \"caulk-runtime\", \"version\": 1, \"released\": ");
    say(&out, off ? "false" : "true");
    say(&out, ", \"sites\": [");
    const char *between = "\n";
    for (struct site *site = __start_caulk_sites; site < __stop_caulk_sites; site++) {
      say(&out, between);
      say(&out, "  {\"file\": ");
      quoted(&out, site->file);
      say(&out, ", \"line\": ");
      number(&out, site->line);
      say(&out, ", \"column\": ");
      number(&out, site->column);
      say(&out, ", \"function\": ");
      quoted(&out, site->function);
      say(&out, ", \"family\": ");
      quoted(&out, site->family);
      say(&out, ", \"blocks\": ");
      number(&out, __atomic_load_n(&site->blocks, __ATOMIC_RELAXED));
      say(&out, ", \"bytes\": ");
      number(&out, __atomic_load_n(&site->bytes, __ATOMIC_RELAXED));
      say(&out, "}");
      between = ",\n";
    }
    say(&out, "\n]}\n");
    flush(&out);
    close(out.file);
  }
  errno = before;
}

static void on_signal(int signal) {
  (void)signal;
  report();
}

// -- Settings --

static void read_settings(void) {
  if (state == ready)
    return;
  started = getpid();
  // Who runs a program with more rights than his own does not choose which files it writes.
  const char *text = secure_getenv ? secure_getenv("CAULK_RT") : NULL;
  while (text && *text) {
    size_t length = strcspn(text, ",");
    if (length == 3 && !memcmp(text, "off", 3))
      off = 1;
    else if (length == 7 && !memcmp(text, "verbose", 7))
      verbose = 1;
    else if (length > 7 && !memcmp(text, "report=", 7) && length - 7 < sizeof path) {
      memcpy(path, text + 7, length - 7);
      path[length - 7] = 0;
    }
    text += length + (text[length] == ',');
  }
  state = ready;
}

__attribute__((constructor)) static void begin(void) {
  read_settings();
  struct sigaction now;
  // The program's own handler, if there is one already, stays.
  if (path[0] && !sigaction(SIGUSR2, NULL, &now) && now.sa_handler == SIG_DFL) {
    struct sigaction mine = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigaction(SIGUSR2, &mine, NULL);
  }
}

__attribute__((destructor)) static void end(void) { report(); }

// -- A lost block --

/// Standard input, output and error are used without being named.
static int is_standard(void *block, const struct site *site) {
  if (site->integer)
    return (intptr_t)block - 1 <= 2;
  if (site->release == (void *)&fclose) {
    int number = fileno(block);
    return number >= 0 && number <= 2;
  }
  return 0;
}

/// Called by guarded code only, with a block that nobody can use any more.
__attribute__((visibility("hidden"))) void __caulk_reclaim(void *block, struct site *site) {
  int before = errno;
  read_settings();
  if (is_standard(block, site)) {
    errno = before;
    return;
  }
  uint64_t size = 0;
  // Only for those who want to know: it is one more function that an allocator of another kind must have.
  if ((verbose || path[0]) && !site->integer && site->release == (void *)&free && malloc_usable_size)
    size = malloc_usable_size(block);
  __atomic_fetch_add(&site->blocks, 1, __ATOMIC_RELAXED);
  __atomic_fetch_add(&site->bytes, size, __ATOMIC_RELAXED);
  if (verbose) {
    struct out out = {.file = 2};
    say(&out, "caulk: ");
    say(&out, off ? "lost " : "reclaimed ");
    say(&out, site->family);
    if (size) {
      say(&out, " (");
      number(&out, size);
      say(&out, " bytes)");
    }
    say(&out, " from ");
    say(&out, site->file);
    say(&out, ":");
    number(&out, site->line);
    say(&out, " in ");
    say(&out, site->function);
    say(&out, "\n");
    flush(&out);
  }
  if (!off) {
    if (site->integer)
      ((int (*)(int))site->release)((int)((intptr_t)block - 1));
    else
      ((void (*)(void *))site->release)(block);
  }
  errno = before;
}
