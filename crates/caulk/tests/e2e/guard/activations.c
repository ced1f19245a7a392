// Blocks of many activations at once: recursion, loops that carry blocks, realloc that moves, containers that refuse.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct node {
    char *text;
    struct node *next;
};
static struct node *kept;
static int room;

static int keep(char *text) {
    if (room-- <= 0)
        return -1;
    struct node *node = malloc(sizeof *node);
    if (!node)
        return -1;
    node->text = text;
    node->next = kept;
    kept = node;
    return 0;
}

// Each activation has a block of its own; every third is kept, one is released, the others are lost.
static size_t descend(int depth) {
    if (!depth)
        return 0;
    char *mine = malloc(32);
    if (!mine)
        return 0;
    sprintf(mine, "depth %d", depth);
    size_t below = descend(depth - 1);
    if (depth % 3 == 0) {
        keep(mine);
    } else if (depth % 5 == 0) {
        free(mine);
        return below;
    }
    return below + strlen(mine);
}

// The block of the last round is still used in this one.
static void carry(int rounds) {
    char *last = NULL;
    for (int i = 0; i < rounds; i++) {
        char *now = malloc(16);
        if (!now)
            return;
        sprintf(now, "round %d", i);
        if (last)
            printf("%s after %s\n", now, last);
        free(last);
        last = now;
    }
    free(last);
}

static void grow(int rounds, int lose) {
    char *text = NULL;
    size_t size = 0;
    for (int i = 0; i < rounds; i++) {
        char *more = realloc(text, size += 4096);
        if (!more)
            break;
        text = more;
        text[size - 1] = (char)('a' + i);
    }
    if (text)
        printf("%c\n", text[size - 1]);
    if (!lose)
        free(text);
}

// A prefix before what callers see, and two blocks in one object.
static char *text_new(const char *from) {
    size_t *head = malloc(sizeof *head + strlen(from) + 1);
    if (!head)
        abort();
    *head = strlen(from);
    return strcpy((char *)(head + 1), from);
}
static void text_free(char *text) { free((size_t *)text - 1); }

struct pair {
    char *left, *right;
};
static struct pair *pair_new(const char *left, const char *right) {
    struct pair *pair = malloc(sizeof *pair);
    if (!pair)
        return NULL;
    pair->left = text_new(left);
    pair->right = right ? text_new(right) : NULL;
    return pair;
}

static int pairs(int how) {
    struct pair *pair = pair_new("left", how ? "right" : NULL);
    if (!pair)
        return -1;
    printf("%s %s\n", pair->left, pair->right ? pair->right : "-");
    if (how == 2) {
        text_free(pair->left);
        text_free(pair->right);
        free(pair);
    }
    return how;
}

int main(void) {
    room = 5;
    printf("%zu\n", descend(20));
    for (int i = 0; i < 4; i++) {
        char *copy = strdup("copy");
        if (keep(copy) < 0)
            printf("refused %s\n", copy);
    }
    carry(6);
    grow(3, 0);
    grow(4, 1);
    for (int how = 0; how < 3; how++)
        pairs(how);
    while (kept) {
        struct node *node = kept;
        kept = node->next;
        puts(node->text);
        free(node->text);
        free(node);
    }
    return 0;
}
