#include <stdio.h>
#include <string.h>

#include "notes.h"

static int add_line(struct store *store, const char *line) {
    struct note *note = note_parse(line);
    if (!note)
        return -1;
    return store_add(store, note);
}

static int load(struct store *store, const char *path) {
    char line[256];
    FILE *in = fopen(path, "r");
    if (!in) {
        perror(path);
        return -1;
    }
    if (!fgets(line, sizeof line, in) || strcmp(line, "notes 1\n") != 0) {
        fprintf(stderr, "%s: not a notes file\n", path);
        return -1;
    }
    while (fgets(line, sizeof line, in))
        if (add_line(store, line) < 0)
            fprintf(stderr, "%s: skipped: %s", path, line);
    fclose(in);
    return 0;
}

int main(int argc, char **argv) {
    struct store store = {0};
    int failed = 0;
    for (int i = 1; i < argc; i++)
        if (load(&store, argv[i]) < 0)
            failed = 1;
    for (struct link *link = store.first; link; link = link->next)
        printf("%s:%s", link->note->key, link->note->text);
    store_free(&store);
    return failed;
}
