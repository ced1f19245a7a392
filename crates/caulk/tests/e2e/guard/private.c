// Correct programs whose blocks lie in memory that functions of the program made, go through tables of functions, or are
// still there where null comes back: guarded by force, nothing changes.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct node {
  char *text;
  struct node *next;
};
static void *xmalloc(size_t n) {
  void *p = malloc(n + 16);
  if (!p)
    abort();
  *(size_t *)p = n;
  return (char *)p + 16;
}

static void xfree(void *p) {
  if (p)
    free((char *)p - 16);
}

static struct node *mk(void) {
  struct node *n = xmalloc(sizeof *n);
  n->text = NULL;
  n->next = NULL;
  return n;
}

static char *xdup(const char *s) {
  char *p = xmalloc(strlen(s) + 1);
  return strcpy(p, s);
}

static struct node *head;

// Memory that others know, and that is stored into again later.
static void published(int k) {
  struct node *n = mk();
  for (int i = 0; i < k; i++) {
    char *t = xdup("one");
    if (i == 1)
      head = n;
    if (n->text)
      xfree(n->text);
    n->text = t;
  }
  n = NULL;
  if (head) {
    puts(head->text);
    xfree(head->text);
    xfree(head);
    head = NULL;
  }
}

// Made anew in each round, and the older ones are still known.
static void published_chain(int k) {
  struct node *prev = NULL;
  for (int i = 0; i < k; i++) {
    struct node *n = mk();
    n->text = xdup("one2");
    n->next = prev;
    prev = n;
    if (i == k / 2)
      head = n;
  }
  while (prev) {
    struct node *nx = prev->next;
    puts(prev->text);
    xfree(prev->text);
    xfree(prev);
    prev = nx;
  }
  head = NULL;
}

// An older one that others know leads to the new one.
static void published_links(int k) {
  struct node *old = NULL;
  for (int i = 0; i < k; i++) {
    struct node *n = mk();
    if (old)
      old->next = n;
    else
      head = n;
    n->text = xdup("one3");
    old = n;
  }
  while (head) {
    struct node *nx = head->next;
    puts(head->text);
    xfree(head->text);
    xfree(head);
    head = nx;
  }
}

// The memory is released, and the block goes on.
static void drop(struct node *n) {
  xfree(n);
}

static void drop2(struct node *n, int all) {
  if (all)
    xfree(n->text);
  xfree(n);
}

static char *outlives(int w) {
  struct node *n = mk();
  n->text = xdup("two");
  char *t = n->text;
  if (w == 0)
    drop(n);
  else
    drop2(n, w == 2);
  return w == 2 ? NULL : t;
}

static void outlives_in_place(int w) {
  struct node *n = mk();
  n->text = xdup("two2");
  char *t = w ? NULL : n->text;
  drop2(n, w);
  if (t) {
    puts(t);
    xfree(t);
  }
}

// Null comes back, and it was stored through another argument.
static char *put(struct node *n, char *t, int fail) {
  n->text = t;
  return fail ? NULL : t;
}

static void into_memory(int fail) {
  struct node *n = mk();
  char *r = put(n, xdup("three"), fail);
  puts(r ? r : n->text);
  xfree(n->text);
  xfree(n);
}

static void into_a_variable(int fail) {
  struct node n = {0};
  char *r = put(&n, xdup("three2"), fail);
  puts(r ? r : n.text);
  xfree(n.text);
}

static char *keep(char **slot, char *t) {
  *slot = t;
  return NULL;
}

static void into_a_slot(void) {
  char *slot;
  if (!keep(&slot, xdup("three3")))
    puts(slot);
  xfree(slot);
}

// Two variables in turn.
static char *add(char *s, const char *t, int ok) {
  if (!ok)
    return NULL;
  size_t l = strlen(s);
  char *r = realloc(s, l + strlen(t) + 1);
  return r ? strcat(r, t) : NULL;
}

static void in_turn(int k) {
  char *a = strdup("a"), *b = strdup("b");
  for (int i = 0; i < k; i++) {
    char *r = add(i & 1 ? a : b, "+", i != 2);
    if (!r)
      continue;
    if (i & 1)
      a = b, b = r;
    else
      b = a, a = r;
  }
  puts(a);
  puts(b);
  free(a);
  free(b);
}

// Tables of functions, of which some keep what they make.
struct ops {
  struct node *(*make)(const char *);
  void (*put)(struct node *, char *);
  void (*end)(struct node *);
};
static struct node *pool[4];
static int used;

static struct node *make_a(const char *s) {
  struct node *n = mk();
  n->text = xdup(s);
  return n;
}

static struct node *make_b(const char *s) {
  struct node *n = mk();
  n->text = xdup(s);
  pool[used++ & 3] = n;
  return n;
}

static struct node *make_c(const char *s) {
  return used ? pool[(used - 1) & 3] : NULL;
}

static void put_a(struct node *n, char *t) {
  xfree(n->text);
  n->text = t;
}

static void put_b(struct node *n, char *t) {
  xfree(n->text);
  n->text = xdup(t);
  xfree(t);
}

static void end_a(struct node *n) {
  puts(n->text);
  xfree(n->text);
  xfree(n);
}

static void end_b(struct node *n) {
  puts(n->text);
}
static const struct ops all[3] = {{make_a, put_a, end_a}, {make_b, put_b, end_b}, {make_c, put_a, end_b}};

static void by_table(int w, const char *s) {
  const struct ops *o = &all[w];
  struct node *n = o->make(s);
  if (!n)
    return;
  o->put(n, xdup("five"));
  o->end(n);
}

static void end_tables(void) {
  for (int i = 0; i < 4; i++) if (pool[i]) {
    xfree(pool[i]->text);
    xfree(pool[i]);
    pool[i] = NULL;
  }
}

// Put into such memory on some ways only.
static struct node *on_some_ways(int k, int m) {
  struct node *n = mk();
  char *t = NULL;
  for (int i = 0; i < k; i++) {
    if (!t)
      t = xdup("six");
    if (i == m) {
      n->text = t;
      t = NULL;
    }
  }
  if (t && !n->text) {
    n->text = t;
    t = NULL;
  }
  if (t)
    xfree(t);
  return n;
}

static struct node *listed(const char **v, int c) {
  struct node *first = NULL, **end = &first;
  for (int i = 0; i < c; i++) {
    struct node *n = mk();
    char *t = xdup(v[i]);
    if (!*t) {
      xfree(t);
      xfree(n);
      continue;
    }
    n->text = t;
    *end = n;
    end = &n->next;
  }
  return first;
}

struct vec {
  char **v;
  int n;
};

static struct vec *vec_new(void) {
  struct vec *v = xmalloc(sizeof *v);
  v->v = NULL;
  v->n = 0;
  return v;
}

static int vec_push(struct vec *v, char *s) {
  char **m = realloc(v->v, (v->n + 1) * sizeof *m);
  if (!m)
    return -1;
  v->v = m;
  m[v->n++] = s;
  return 0;
}

static void collected(int k) {
  struct vec *v = vec_new();
  for (int i = 0; i < k; i++) {
    char *s = xdup("eight");
    if (i & 1) {
      xfree(s);
      continue;
    }
    if (vec_push(v, s))
      xfree(s);
  }
  for (int i = 0; i < v->n; i++) {
    puts(v->v[i]);
    xfree(v->v[i]);
  }
  free(v->v);
  xfree(v);
}

// Memory that leads to more that its maker made, or to itself.
struct box {
  struct node *inner;
  char *name;
};

static struct box *box_new(void) {
  struct box *b = xmalloc(sizeof *b);
  b->inner = mk();
  b->name = NULL;
  return b;
}

static void inner(void) {
  struct box *b = box_new();
  b->inner->text = xdup("nine inner");
  b->name = xdup("nine");
  struct node *in = b->inner;
  char *nm = b->name;
  xfree(b);
  puts(in->text);
  puts(nm);
  xfree(in->text);
  xfree(in);
  xfree(nm);
}

struct self {
  struct self *me;
  char *t;
};

static struct self *self_new(void) {
  struct self *s = xmalloc(sizeof *s);
  s->me = s;
  s->t = NULL;
  return s;
}

static void own_address(void) {
  struct self *s = self_new();
  s->t = xdup("ten");
  struct self *m = s->me;
  s = NULL;
  puts(m->t);
  xfree(m->t);
  xfree(m);
}
static char *last;

static char *remember(char *t, int again) {
  if (again && last) {
    char *l = last;
    last = NULL;
    puts(l);
    xfree(l);
  }
  last = t;
  return NULL;
}

static void remembered(int k) {
  for (int i = 0; i < k; i++) {
    char *r = remember(xdup("eleven"), 1);
    if (r)
      xfree(r);
  }
  remember(NULL, 1);
}

int main(int c, char **v) {
  for (int k = 0; k < 5; k++) {
    published(k + 2);
    published_chain(k);
    published_links(k);
    in_turn(k);
    collected(k);
    remembered(k);
  }
  for (int w = 0; w < 3; w++) {
    char *t = outlives(w);
    if (t) {
      puts(t);
      xfree(t);
    }
  }
  outlives_in_place(0);
  outlives_in_place(1);
  into_memory(0);
  into_memory(1);
  into_a_variable(0);
  into_a_variable(1);
  into_a_slot();
  for (int w = 0; w < 2; w++)
    by_table(w, "x");
  by_table(2, "y");
  end_tables();
  for (int k = 0; k < 4; k++) for (int m = 0; m < 4; m++) {
    struct node *n = on_some_ways(k, m);
    puts(n->text ? n->text : "-");
    xfree(n->text);
    xfree(n);
  }
  const char *w[] = {"a", "", "b", "c"};
  struct node *n = listed(w, 4);
  while (n) {
    struct node *nx = n->next;
    puts(n->text);
    xfree(n->text);
    xfree(n);
    n = nx;
  }
  inner();
  own_address();
  return 0;
}
