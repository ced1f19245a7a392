struct node {
  char *text;
  struct node *next;
};
struct node *node_new(char *text);
void node_fill(struct node *node, const char *text);
void node_free(struct node *node);
struct node *node_shared(void);
struct node *node_registered(void);
struct node *node_last(void);
struct node *node_pointed(void);

struct kind {
  char *(*make)(const char *text);
  int (*look)(char *text);
  void (*release)(void *made);
};
extern const struct kind plain_kind, keeping_kind;
const char *kept_text(void);
void drop_kept(void);
