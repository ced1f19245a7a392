// Blocks that come out of functions of the program's own by another way than the result, or from an allocator that can be
// exchanged: what is lost is reclaimed, what is not stays.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Through an argument.
static int copy(char **out, const char *text) {
  char *made = malloc(strlen(text) + 1);
  if (!made)
    return -1;
  strcpy(made, text);
  *out = made;
  return text[0] == 'x' ? -1 : 0;
}

static int lost_on_failure(const char *text) {
  char *made;
  if (copy(&made, text) < 0)
    return 0; // lost, if it starts with x
  printf("%s\n", made);
  free(made);
  return 1;
}

// Into a struct of the caller's, which may be a block itself.
struct pair {
  char *first, *second;
};

static void fill(struct pair *pair, const char *text) {
  pair->first = strdup(text);
  pair->second = strdup("second");
}

static void half(const char *text) {
  struct pair pair;
  fill(&pair, text);
  puts(pair.first ? pair.first : "");
  free(pair.first); // the second is lost
}

static void lost_whole(const char *text) {
  struct pair *pair = calloc(1, sizeof *pair);
  if (!pair)
    return;
  fill(pair, text);
  if (pair->first && pair->first[0] == 'k') {
    puts(pair->second ? pair->second : "");
    free(pair->first);
    free(pair->second);
    free(pair);
  } // else all three are lost
}

// As a result that is too large for registers.
struct large {
  char *text;
  long numbers[4];
};

static struct large make_large(const char *text) {
  struct large large = {strdup(text), {1, 2, 3, 4}};
  return large;
}

static long lost_large(const char *text) {
  struct large large = make_large(text);
  return large.numbers[1];
}

// The variable is known elsewhere, before or after.
static char **watched;
static int watch(char **out, const char *text) {
  watched = out;
  return copy(out, text);
}

static void kept_by_watching(void) {
  char *made = NULL;
  if (watch(&made, "watched") == 0) {
    puts(*watched);
    free(*watched);
  }
  watched = NULL;
}

static int copy_and_watch(char **out, const char *text) {
  if (copy(out, text) < 0)
    return -1;
  watched = out;
  return 0;
}

static void kept_by_watching_later(int rounds) {
  char *made = NULL;
  while (rounds--) {
    if (watched)
      free(*watched);
    if (copy_and_watch(&made, "watched later") < 0)
      return;
  }
  puts(*watched);
  free(*watched);
}

// What was there before is released first.
static void replace(char **slot, const char *text) {
  free(*slot);
  *slot = strdup(text);
}

static void replaced(void) {
  char *text = NULL;
  for (int i = 0; i < 3; i++)
    replace(&text, i == 1 ? "one" : "other");
  puts(text ? text : "");
  free(text);
}

// Both the result and an argument.
static char *twice(char **out, const char *text) {
  char *made = strdup(text);
  *out = made;
  return made;
}

static void both_ways(void) {
  char *one, *other = twice(&one, "twice");
  one = NULL;
  puts(other ? other : "");
  free(other);
}

// Two arguments that are the same.
static void through(char **out, char **same, const char **seen) {
  *out = strdup("through");
  *seen = *same;
}

static void same_arguments(void) {
  char *made;
  const char *seen;
  through(&made, &made, &seen);
  made = NULL;
  puts(seen ? seen : "");
  free((char *)seen);
}

// An allocator that can be exchanged.
struct allocator {
  void *(*make)(size_t);
  void (*release)(void *);
} allocator = {malloc, free};

static char *allocated(const char *text) {
  char *made = allocator.make(strlen(text) + 1);
  return made ? strcpy(made, text) : NULL;
}

static int lost_allocated(const char *text) {
  char *made = allocated(text);
  if (text[0] == 'x')
    return 0;
  puts(made ? made : "");
  allocator.release(made);
  return 1;
}

static char pool[256];
static size_t used;
static void *from_pool(size_t size) {
  char *made = pool + used;
  used += (size + 15) & ~(size_t)15;
  return used <= sizeof pool ? made : NULL;
}
static void to_pool(void *made) { (void)made; }

// Further arguments.
static char *format(char *text, const char *words, ...) {
  char rest[64];
  va_list list;
  va_start(list, words);
  vsnprintf(rest, sizeof rest, words, list);
  va_end(list);
  char *larger = realloc(text, strlen(rest) + 1);
  if (!larger) {
    free(text);
    return NULL;
  }
  return strcpy(larger, rest);
}

static int lost_formatted(const char *text) {
  char *made = format(strdup("-"), "%s %d %c", text, 7, '!');
  if (text[0] == 'x')
    return 0;
  puts(made ? made : "");
  free(made);
  return 1;
}

int main(void) {
  lost_on_failure("kept");
  lost_on_failure("x lost");
  half("half");
  lost_whole("kept");
  lost_whole("lost");
  printf("%ld\n", lost_large("large"));
  kept_by_watching();
  kept_by_watching_later(3);
  replaced();
  both_ways();
  same_arguments();
  lost_allocated("kept");
  lost_allocated("x lost");
  lost_formatted("kept");
  lost_formatted("x lost");
  allocator = (struct allocator){from_pool, to_pool};
  lost_allocated("kept in the pool");
  lost_allocated("x in the pool");
  return 0;
}
