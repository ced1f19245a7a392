#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A wrapper: what it allocates belongs to whoever calls it. */
static void *must_alloc(size_t size) {
    void *block = malloc(size);
    if (!block)
        abort();
    return block;
}

static int parse(const char *line) {
    char *copy = must_alloc(strlen(line) + 1);
    strcpy(copy, line);
    if (!strchr(copy, ':'))
        return -1;
    int length = (int)strlen(copy);
    free(copy);
    return length;
}

static int twice(int again) {
    char *word = malloc(8);
    if (!word)
        return -1;
    word[0] = 'w';
    if (again)
        free(word);
    free(word);
    return again;
}

static int late(int early) {
    int *number = malloc(sizeof *number);
    if (!number)
        return -1;
    *number = 7;
    if (early) {
        free(number);
        return *number;
    }
    free(number);
    return 0;
}

static char *kept(void) {
    char *name = malloc(4);
    if (name)
        name[0] = '\0';
    return name;
}

int main(int argc, char **argv) {
    int mode = argc > 1 ? argv[1][0] - '0' : 0;
    char *name = kept();
    int result = name != NULL;
    if (mode == 1)
        result = parse("no colon here");
    if (mode == 2)
        result = twice(1);
    if (mode == 3)
        result = late(1);
    printf("%d\n", result + parse("a:b"));
    free(name);
    return 0;
}
