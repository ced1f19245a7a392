// Blocks that are lost where null comes back instead of them, that go through pointers to functions, or that lie in memory
// that functions of the program made: what is lost is reclaimed, what is not stays.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ways.h"

// -- Null comes back, and the block is still there --

static char *grow(char *text, size_t size) {
  if (size > 100)
    return NULL; // as where memory runs out
  char *larger = realloc(text, size + 1);
  if (larger && !text)
    larger[0] = 0;
  return larger;
}

static char *append(char *text, const char *more, size_t limit) {
  size_t length = text ? strlen(text) : 0;
  char *larger = grow(text, length + strlen(more) > limit ? 1000 : length + strlen(more));
  return larger ? strcat(larger, more) : NULL;
}

// The last exchange fails, and what it returns is returned.
static char *quoted(const char *text, size_t limit) {
  char *made = append(NULL, "'", limit);
  if (!made)
    return NULL;
  made = append(made, text, limit);
  if (!made)
    return NULL;
  return append(made, "'", limit);
}

// Null is stored where others can reach, and the block is not.
static struct {
  char *text;
} table[4];

static void stored(int at, size_t limit) { table[at].text = append(strdup("stored"), "-", limit); }

// Null goes to somebody who would have kept it.
static void keep(char *text) { table[3].text = text; }
static void handed(size_t limit) { keep(append(strdup("handed"), "-", limit)); }

// From round to round.
static char *rounds(int count, size_t limit) {
  char *made = NULL;
  while (count-- > 0) {
    made = append(made, "round ", limit);
    if (!made)
      break;
  }
  return made;
}

static char *careless(int count, size_t limit) {
  char *made = strdup("-");
  while (count-- > 0)
    made = append(made, "+", limit);
  return made;
}

// A second name for what comes back as null: it is still in use.
static void two_names(size_t limit) {
  char *made = strdup("two names"), *other = made;
  made = append(made, "-", limit);
  if (made) {
    puts(made);
    free(made);
  } else {
    puts(other);
    free(other);
  }
}

// Null comes back, and a variable that others see has it.
static char *seen;
static char *watch(char *text) {
  seen = text;
  return NULL;
}
static void watched(void) {
  char *none = watch(strdup("watched"));
  puts(none ? none : seen);
  free(seen);
  seen = NULL;
}

// Null comes back, and memory of this function's has it, or only will have.
static void in_memory(size_t limit) {
  struct {
    char *first, *second;
  } both = {NULL, NULL};
  both.first = strdup("in memory");
  both.second = append(both.first, "-", limit);
  puts(both.second ? both.second : both.first);
  free(both.second ? both.second : both.first);
}

static void later_in_memory(size_t limit) {
  struct node *node = node_new(NULL);
  if (!node)
    return;
  node->text = append(strdup("later in memory"), "-", limit);
  puts(node->text ? node->text : "none");
  node_free(node);
}

static void again_in_memory(int count) {
  struct node *node = node_new(NULL);
  if (!node)
    return;
  while (count-- > 0) {
    char *made = append(node->text ? node->text : strdup("again"), "-", count < 2 ? 1 : 100);
    if (made)
      node->text = made;
  }
  puts(node->text ? node->text : "none");
  node_free(node);
}

// A descriptor is not lost where null is made of it.
static void *handle(int descriptor, int first) { return (void *)(long)(descriptor - first); }
static void counted(void) {
  int first = open("/dev/zero", O_RDONLY);
  close(first);
  void *none = handle(open("/dev/zero", O_RDONLY), first);
  char got = 1;
  puts(read((int)(long)none + first, &got, 1) == 1 && !got ? "counted" : "closed");
  close((int)(long)none + first);
}

// -- Through pointers to functions --

static int lost_made(const struct kind *kind, const char *text) {
  char *made = kind->make(text);
  if (text[0] == 'x')
    return 0;
  puts(made ? made : "");
  kind->release(made);
  return 1;
}

static int lost_looked_at(const struct kind *kind, const char *text) {
  char *made = strdup(text);
  int length = kind->look ? kind->look(made) : 0;
  if (text[0] == 'x')
    return length;
  kind->release(made);
  return length;
}

// -- In memory that functions of the program made --

static int lost_inside(const char *text) {
  struct node *node = node_new(strdup(text));
  if (!node)
    return 0;
  int known = node->text && node->text[0] == 'k';
  if (known) {
    puts(node->text);
    free(node->text);
  }
  free(node);
  return known;
}

static void lost_filled(const char *text) {
  struct node *node = node_new(NULL);
  if (!node)
    return;
  node_fill(node, text);
  if (text[0] == 'k') {
    puts(node->text ? node->text : "");
    node_free(node);
  }
}

// A copy of what was made goes on.
static struct node *kept_node;
static int take(const struct node *from, int really) {
  struct node *copy = node_new(NULL);
  if (!copy)
    return -1;
  memcpy(copy, from, sizeof *copy);
  if (!really) {
    free(copy);
    return -1;
  }
  kept_node = copy;
  return 0;
}

static void copied(const char *text, int really) {
  struct node node = {strdup(text), NULL};
  take(&node, really); // otherwise it is lost
}

// Made, but not for the caller alone.
static void shared(void) {
  struct node *node = node_shared();
  node->text = strdup("shared");
  node = NULL;
  puts(node_shared()->text);
  free(node_shared()->text);
}

static void registered(void) {
  struct node *node = node_registered();
  if (!node)
    return;
  node->text = strdup("registered");
  node = NULL;
  puts(node_last()->text);
  node_free(node_last());
}

static void pointed(void) {
  struct node *node = node_pointed();
  if (!node)
    return;
  node->next->text = strdup("pointed");
  struct node *next = node->next;
  free(node);
  puts(next->text);
  node_free(next);
}

int main(void) {
  char *made = quoted("kept", 100);
  puts(made ? made : "none");
  free(made);
  puts(quoted("lost", 5) ? "made" : "none");
  stored(0, 100);
  puts(table[0].text);
  free(table[0].text);
  stored(1, 1);
  handed(100);
  puts(table[3].text);
  free(table[3].text);
  handed(1);
  free(rounds(3, 100));
  puts(rounds(5, 20) ? "made" : "none");
  made = careless(3, 100);
  puts(made);
  free(made);
  puts(careless(3, 3) ? "made" : "none");
  two_names(100);
  two_names(1);
  watched();
  in_memory(100);
  in_memory(1);
  later_in_memory(100);
  later_in_memory(1);
  again_in_memory(4);
  counted();
  lost_made(&plain_kind, "kept");
  lost_made(&plain_kind, "x lost");
  lost_made(&keeping_kind, "kept twice");
  lost_made(&keeping_kind, "x kept");
  puts(kept_text());
  lost_looked_at(&plain_kind, "kept");
  lost_looked_at(&plain_kind, "x lost");
  lost_looked_at(&keeping_kind, "x kept by looking");
  puts(kept_text());
  drop_kept();
  lost_inside("kept");
  lost_inside("lost");
  lost_filled("kept");
  lost_filled("lost");
  copied("copied", 1);
  puts(kept_node->text);
  node_free(kept_node);
  copied("lost", 0);
  shared();
  registered();
  pointed();
  return 0;
}
