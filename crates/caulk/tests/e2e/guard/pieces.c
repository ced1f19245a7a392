// Addresses that travel as bytes, as numbers and as distances: a correct program, that no guard may change.
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct box {
  char *text;
  int length;
  char mark[8];
};

union word {
  char *text;
  unsigned long number;
  double real;
  unsigned half[2];
};

static char *greeting(const char *name) {
  char *text = malloc(strlen(name) + 7);
  if (!text)
    exit(1);
  strcpy(text, "hello ");
  strcat(text, name);
  return text;
}

static void by_bytes(void) {
  struct box from = {greeting("bytes"), 11, "abc"}, to;
  for (size_t i = 0; i < sizeof from; i++)
    ((char *)&to)[i] = ((char *)&from)[i];
  printf("%s %d %s\n", to.text, to.length, to.mark);
  free(to.text);
}

static void copy(void *to, const void *from, size_t size) {
  char *t = to;
  const char *f = from;
  while (size--)
    *t++ = *f++;
}

static void by_a_function_of_ours(void) {
  struct box from = {greeting("function"), 14, "abc"}, to;
  copy(&to, &from, sizeof to);
  printf("%s %c\n", to.text, from.mark[to.length % 3]);
  free(to.text);
}

static unsigned long number_of(union word *word) { return word->number; }

static void as_a_number(void) {
  union word word;
  word.text = greeting("number");
  unsigned long number = number_of(&word);
  word.number = 0;
  puts((char *)number);
  free((char *)number);
}

static double real_of(union word *word) { return word->real; }

static void as_a_real(void) {
  union word word, other;
  word.text = greeting("real");
  other.real = real_of(&word);
  word.number = 0;
  puts(other.text);
  free(other.text);
}

static void halves(union word *word, unsigned *low, unsigned *high) {
  *low = word->half[0];
  *high = word->half[1];
}

static void in_halves(void) {
  union word word;
  unsigned low, high;
  word.text = greeting("halves");
  halves(&word, &low, &high);
  word.number = 0;
  char *text = (char *)((unsigned long)high << 32 | low);
  puts(text);
  free(text);
}

static char base[1];
static ptrdiff_t kept;

static void as_a_distance(void) {
  char *text = greeting("distance");
  kept = (char *)text - base;
}

static void from_a_distance(void) {
  char *text = base + kept;
  puts(text);
  free(text);
}

struct list {
  struct list *next;
  char *text;
  char mark[4];
};

// A pointer to one member leads to the others.
static char *text_beside(char *mark) { return ((struct list *)(mark - offsetof(struct list, mark)))->text; }

static void by_a_member(void) {
  struct list one = {NULL, greeting("member"), "x"};
  char *text = text_beside(one.mark);
  one.text = NULL;
  puts(text);
  free(text);
}

// The block lies in a block that lies in a variable.
static void keep(struct list *all, char *text) {
  struct list *node = calloc(1, sizeof *node);
  if (!node)
    exit(1);
  node->text = text;
  node->next = all->next;
  all->next = node;
}

static void in_a_list(void) {
  struct list all = {0};
  keep(&all, greeting("first"));
  keep(&all, greeting("second"));
  struct list other;
  copy(&other, &all, sizeof other);
  all.next = NULL;
  while (other.next) {
    struct list *node = other.next;
    other.next = node->next;
    puts(node->text);
    free(node->text);
    free(node);
  }
}

int main(void) {
  by_bytes();
  by_a_function_of_ours();
  as_a_number();
  as_a_real();
  in_halves();
  as_a_distance();
  from_a_distance();
  by_a_member();
  in_a_list();
  return 0;
}
