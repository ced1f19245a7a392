// Blocks and descriptors that stay in use by ways that are hard to see: a correct program, that no guard may change.
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <search.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static char *greeting(const char *name) {
  char *text = malloc(strlen(name) + 7);
  if (!text)
    exit(1);
  strcpy(text, "hello ");
  strcat(text, name);
  return text;
}

static void done(char *text) {
  puts(text);
  free(text);
}

// The low bit says something else.
static uintptr_t tag(char *text, unsigned bit) { return (uintptr_t)text | bit; }
static uintptr_t tagged_slot;
static void tagged(void) {
  uintptr_t local = tag(greeting("tagged"), 1);
  tagged_slot = local;
  local = 0;
  done((char *)(tagged_slot & ~(uintptr_t)1));
}

// A list whose links are both neighbours at once.
struct both {
  uintptr_t link;
  char *text;
};
static void xor_list(void) {
  struct both *head = NULL, *last = NULL;
  for (int i = 0; i < 3; i++) {
    struct both *node = malloc(sizeof *node);
    if (!node)
      exit(1);
    node->text = greeting("xor");
    node->link = (uintptr_t)last;
    if (last)
      last->link ^= (uintptr_t)node;
    else
      head = node;
    last = node;
  }
  uintptr_t before = 0;
  while (head) {
    struct both *next = (struct both *)(head->link ^ before);
    before = (uintptr_t)head;
    done(head->text);
    free(head);
    head = next;
  }
}

// Links that are distances: to the node before, and to where the list is.
static char *first;
static void relative_list(void) {
  char *last = NULL;
  for (int i = 0; i < 3; i++) {
    char *node = calloc(1, 32);
    if (!node)
      exit(1);
    sprintf(node + 8, "hello relative %d", i);
    if (last)
      *(ptrdiff_t *)last = node - last;
    else
      first = node;
    last = node;
  }
}
static void read_relative(void) {
  for (char *node = first; node;) {
    ptrdiff_t step = *(ptrdiff_t *)node;
    char *next = step ? node + step : NULL;
    puts(node + 8);
    free(node);
    node = next;
  }
}
struct anchor {
  char *text;
  ptrdiff_t step;
};
static ptrdiff_t kept_step;
static void relative_to_itself(void) {
  static char *text;
  struct anchor anchor;
  anchor.text = greeting("step");
  anchor.step = anchor.text - (char *)&anchor;
  kept_step = anchor.step;
  anchor.text = NULL;
  text = (char *)&anchor + kept_step;
  done(text);
}

// By memcpy, into a buffer of bytes and out of it again.
static unsigned char buffer[64];
static void put_bytes(size_t at, const void *from, size_t size) { memcpy(buffer + at, from, size); }
static void by_memcpy(void) {
  char *text = greeting("memcpy");
  put_bytes(3, &text, sizeof text);
  text = NULL;
  char *back;
  memcpy(&back, buffer + 3, sizeof back);
  done(back);
}

// By a callee, in a global, in thread-local memory, and in a list of arguments.
static char *kept_global;
static _Thread_local char *kept_local;
static void keep_global(char *text) { kept_global = text; }
static void keep_local(char *text) { kept_local = text; }
static void keep_last(int count, ...) {
  va_list list;
  va_start(list, count);
  for (int i = 0; i < count; i++)
    kept_global = va_arg(list, char *);
  va_end(list);
}
static void by_callees(void) {
  keep_global(greeting("global"));
  done(kept_global);
  keep_local(greeting("local"));
  done(kept_local);
  keep_last(2, "no", greeting("variadic"));
  done(kept_global);
}

static jmp_buf back;
static char *volatile jumped;
static void jump(char *text) {
  jumped = text;
  longjmp(back, 1);
}
static void by_longjmp(void) {
  char *volatile text = greeting("setjmp");
  if (!setjmp(back))
    jump(text);
  done(jumped);
}

static char *volatile for_handler;
static void handle(int number) {
  (void)number;
  puts(for_handler);
}
static void by_signal(void) {
  char *text = greeting("signal");
  for_handler = text;
  signal(SIGUSR1, handle);
  raise(SIGUSR1);
  free(for_handler);
}

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }
static void sorted(void) {
  char *names[3];
  names[0] = greeting("qsort c");
  names[1] = greeting("qsort a");
  names[2] = greeting("qsort b");
  qsort(names, 3, sizeof *names, by_text);
  for (int i = 0; i < 3; i++)
    done(names[i]);
}
// The comparison remembers what it saw.
static const char *seen_key;
static int seeing(const void *key, const void *element) {
  seen_key = key;
  return strcmp(key, element);
}
static void searched(void) {
  static char table[2][16] = {"hello a", "hello bsearch"};
  bsearch(greeting("bsearch"), table, 2, 16, seeing);
  done((char *)seen_key);
}

// Printed and read again.
static char printed[64];
static void print_address(void) { snprintf(printed, sizeof printed, "%p", (void *)greeting("printed")); }
static void print_number(void) { sprintf(printed, "%lx", (unsigned long)greeting("hexadecimal")); }
static void print_through(const char *format, ...) {
  va_list list;
  va_start(list, format);
  vsnprintf(printed, sizeof printed, format, list);
  va_end(list);
}
static void read_again(void) {
  void *text;
  print_address();
  if (sscanf(printed, "%p", &text) == 1)
    done(text);
  print_number();
  done((char *)strtoul(printed, NULL, 16));
  print_through("%p", (void *)greeting("through"));
  if (sscanf(printed, "%p", &text) == 1)
    done(text);
}

static void *thread(void *text) {
  puts(text);
  return text;
}
static void by_thread(void) {
  pthread_t id;
  void *text;
  if (pthread_create(&id, NULL, thread, greeting("thread")))
    exit(1);
  pthread_join(id, &text);
  free(text);
}
static pthread_key_t key;
static void by_key(void) {
  pthread_key_create(&key, NULL);
  pthread_setspecific(key, greeting("key"));
  done(pthread_getspecific(key));
}

static char *by_asm_slot;
static void by_asm(void) {
  char *text = greeting("asm");
#ifdef __x86_64__
  __asm__ volatile("movq %1, %0" : "=m"(by_asm_slot) : "r"(text));
#else
  by_asm_slot = text;
#endif
  text = NULL;
  done(by_asm_slot);
}

// What libraries keep.
static void by_libraries(void) {
  char *variable = malloc(32);
  if (!variable)
    exit(1);
  strcpy(variable, "HIDDEN=hello putenv");
  putenv(variable);
  puts(getenv("HIDDEN"));
  setenv("HIDDEN", greeting("setenv") /* copied, and lost */, 1);
  puts(getenv("HIDDEN"));
  FILE *file = tmpfile();
  if (!file)
    exit(1);
  char *space = malloc(BUFSIZ);
  setvbuf(file, space, _IOFBF, BUFSIZ);
  fputs("hello setvbuf\n", file);
  rewind(file);
  char line[32] = "";
  fputs(fgets(line, sizeof line, file), stdout);
  fclose(file);
  free(space);
  free(variable);
}

// A place within the block that leads back to the whole.
struct whole {
  char text[24];
  struct link {
    struct link *next;
  } link;
};
static struct link *links;
static void push(struct link *link) {
  link->next = links;
  links = link;
}
static void by_member(void) {
  struct whole *whole = malloc(sizeof *whole);
  if (!whole)
    exit(1);
  strcpy(whole->text, "hello container");
  push(&whole->link);
  struct whole *again = (struct whole *)((char *)links - offsetof(struct whole, link));
  puts(again->text);
  free(again);
}

// Results that are arguments.
static void results(void) {
  char *space = malloc(4096);
  char *folder = getcwd(space, 4096);
  space = NULL;
  printf("hello getcwd %d\n", folder && *folder == '/');
  free(folder);
  space = malloc(4096);
  char *path = realpath("/", space);
  space = NULL;
  printf("hello realpath %s\n", path);
  free(path);
  char *text = (char *)labs((long)greeting("labs"));
  done(text);
  char *end = stpcpy(malloc(16), "hello stpcpy");
  done(end - strlen("hello stpcpy"));
}

// An array whose first element is written without being named.
static void arrays(int n) {
  char *names[n + 2];
  names[1] = greeting("array");
  *names = NULL;
  done(names[1]);
}

// A descriptor behind a stream that nobody names any more.
static int stream_number(void) {
  FILE *stream = fopen("/dev/null", "r");
  return stream ? fileno(stream) : -1;
}
static int folder_number(void) {
  DIR *folder = opendir("/");
  return folder ? dirfd(folder) : -1;
}
static void numbers_behind(void) {
  char c;
  printf("hello stream %d\n", (int)read(stream_number(), &c, 1));
  printf("hello folder %d\n", fcntl(folder_number(), F_GETFD) >= 0);
}

// Descriptors that are named by where something else stands, or in a text.
static char active[1024], name[32];
static void mark(void) {
  int file = open("/dev/null", O_RDONLY);
  if (file >= 0)
    active[file] = 1;
}
static void write_name(void) {
  int file = open("/dev/null", O_RDONLY);
  snprintf(name, sizeof name, "/proc/self/fd/%d", file);
}
static void named_descriptors(void) {
  mark();
  for (int i = 0; i < 1024; i++)
    if (active[i])
      printf("hello index %d\n", close(i));
  write_name();
  char target[32] = "";
  printf("hello name %d\n", readlink(name, target, sizeof target - 1) > 0);
  close(atoi(strrchr(name, '/') + 1));
}

// All are closed, and the number is somebody else's now.
static void close_all(void) {
  for (int i = 3; i < 64; i++)
    close(i);
}
static void closed_by_number(int all, int inside) {
  int file = open("/dev/null", O_RDONLY), other;
  if (inside)
    for (int i = 3; all && i < 64; i++)
      close(i);
  else if (all)
    close_all();
  other = open("/dev/null", O_RDONLY);
  if (!all)
    close(file);
  printf("hello number %d\n", close(other));
}

// Cleared at the end of its scope.
static void clear(char **text) {
  done(*text);
  *text = NULL;
}
static void scoped(void) {
  __attribute__((cleanup(clear))) char *text = greeting("scope");
  if (text[6] == 'x')
    return;
  text[0] = 'H';
}

// Nodes on the stack, as many as there are rounds.
struct on_stack {
  struct on_stack *next;
  char *text;
};
static void on_stack(int n) {
  struct on_stack *head = NULL;
  while (n--) {
    struct on_stack *node = __builtin_alloca(sizeof *node);
    node->text = greeting("stack");
    node->next = head;
    head = node;
  }
  for (; head; head = head->next)
    done(head->text);
}

// A struct that is passed, returned and read as a struct of numbers.
struct pair {
  char *text;
  long length;
};
struct numbers {
  uintptr_t first, second;
};
union pun {
  struct pair pair;
  struct numbers numbers;
};
static struct pair make(const char *name) {
  struct pair pair = {greeting(name), 1};
  return pair;
}
static uintptr_t number_in(const struct numbers *numbers) { return numbers->first; }
static uintptr_t kept_number;
static void punned(void) {
  union pun pun;
  pun.pair = make("pun");
  kept_number = number_in(&pun.numbers);
  pun.pair.text = NULL;
  done((char *)kept_number);
}

// The last in a tree of the library's.
static int compare(const void *a, const void *b) { return strcmp(a, b); }
static void in_a_tree(void) {
  void *tree = NULL;
  tsearch(greeting("tree"), &tree, compare);
  void *found = tfind("hello tree", &tree, compare);
  if (!found)
    exit(1);
  char *text = *(char **)found;
  tdelete("hello tree", &tree, compare);
  done(text);
}

int main(int argc, char **argv) {
  int which = argc > 1 ? atoi(argv[1]) : 0, at = 0;
#define RUN(call)                                                                                                      \
  if (at++, !which || which == at) {                                                                                   \
    call;                                                                                                              \
  }
  RUN(tagged())
  RUN(xor_list())
  RUN(relative_list(); read_relative())
  RUN(relative_to_itself())
  RUN(by_memcpy())
  RUN(by_callees())
  RUN(by_longjmp())
  RUN(by_signal())
  RUN(sorted())
  RUN(searched())
  RUN(read_again())
  RUN(by_thread())
  RUN(by_key())
  RUN(by_asm())
  RUN(by_libraries())
  RUN(by_member())
  RUN(results())
  RUN(arrays(argc))
  RUN(numbers_behind())
  RUN(named_descriptors())
  RUN(closed_by_number(argc > 0, 0); closed_by_number(argc > 0, 1); closed_by_number(argc < 0, 0))
  RUN(scoped())
  RUN(on_stack(3))
  RUN(punned())
  RUN(in_a_tree())
  return 0;
}
