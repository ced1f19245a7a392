// Two leaks that no patch repairs, and one that a patch does: guarded without being asked are the two.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *kept[8];
static int count;

// 0 does not say whether the block was kept.
static int keep(void *p, int kind) {
  if (kind == 0)
    return 0;
  if (count == 8)
    return -1;
  kept[count++] = p;
  return 0;
}

static int same_result(int kind) {
  int *p = malloc(sizeof *p);
  if (!p)
    return -1;
  int x = keep(p, kind);
  *p = x;
  return x;
}

#define SAY(text)                                                                                                              \
  do {                                                                                                                         \
    char *copy_ = strdup(text);                                                                                                \
    if (copy_)                                                                                                                 \
      puts(copy_);                                                                                                             \
  } while (0)

static void in_a_macro(const char *text) { SAY(text); }

static int patched(const char *text) {
  char *copy = strdup(text);
  if (!copy)
    return -1;
  if (strlen(copy) > 3)
    return 1;
  free(copy);
  return 0;
}

int main(void) {
  for (int i = 0; i < 6; i++)
    same_result(i % 2);
  in_a_macro("macro");
  printf("%d\n", patched("short") + patched("no"));
  while (count)
    free(kept[--count]);
  return 0;
}
