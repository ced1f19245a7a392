// Sites that cannot be guarded: each line says what `caulk cc` says of it.
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct entry {
  struct entry *next;
  char text[16];
};
static struct entry *table;

static struct entry *intern(const char *text) {
  struct entry *made = malloc(sizeof *made);
  strcpy(made->text, text);
  made->next = table;
  table = made;
  return made;
}

static void *indirect(size_t size) {
  void *(*make)(size_t) = size > 100 ? valloc : malloc;
  return make(size);
}

static char *name;

int main(int count, char **words) {
  intern("x"); // not guarded: what `intern` makes is stored into memory that others can reach at unguarded.c:17
  indirect(7); // not guarded: it comes out of a call through a function pointer at unguarded.c:23
  glob_t found;
  if (glob("*", 0, NULL, &found)) // not guarded: what `glob` makes is kept in a variable of the program's (`globfree` takes its address), not in a block of its own
    return 1;
  name = strdup("kept"); // not guarded: it is stored into memory that others can reach at unguarded.c:34
  popen("true", "r"); // not guarded: what `popen` makes is released by `pclose`, which is none of the functions that reclaim
  return 0;
}
