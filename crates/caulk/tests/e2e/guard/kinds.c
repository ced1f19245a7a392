// The other unit of ways.c: functions that nobody calls by name, and functions that make memory.
#include <stdlib.h>
#include <string.h>

#include "ways.h"

static char *make_plain(const char *text) { return strdup(text); }
static int look_plain(char *text) { return text ? (int)strlen(text) : 0; }
const struct kind plain_kind = {make_plain, look_plain, free};

// What these are given or make stays in use.
static char *kept[8];
static int count;
static char *make_kept(const char *text) {
  char *made = strdup(text);
  kept[count++] = made;
  return made;
}
static int look_kept(char *text) {
  kept[count++] = text;
  return count;
}
static void release_kept(void *made) { (void)made; }
const struct kind keeping_kind = {make_kept, look_kept, release_kept};

const char *kept_text(void) { return kept[count - 1]; }
void drop_kept(void) {
  while (count)
    free(kept[--count]);
}

static void *checked(size_t size) {
  void *made = size < 1000 ? malloc(size) : NULL;
  return made ? memset(made, 0, size) : NULL;
}

struct node *node_new(char *text) {
  struct node *node = checked(sizeof *node);
  if (node)
    node->text = text;
  return node;
}

void node_fill(struct node *node, const char *text) { node->text = strdup(text); }

void node_free(struct node *node) {
  free(node->text);
  free(node);
}

struct node *node_shared(void) {
  static struct node node;
  return &node;
}

static struct node *last;
struct node *node_registered(void) { return last = node_new(NULL); }
struct node *node_last(void) { return last; }

struct node *node_pointed(void) {
  struct node *node = node_new(NULL);
  if (node)
    node->next = node_new(NULL);
  return node && node->next ? node : (free(node), NULL);
}
