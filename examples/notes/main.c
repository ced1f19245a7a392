#include <stdio.h>
#include <string.h>

#include "notes.h"

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
    while (fgets(line, sizeof line, in)) {
        struct note *note = note_parse(line);
        if (!note)
            continue;
        if (store_add(store, note) < 0)
            fprintf(stderr, "%s: skipped: %s", path, line);
    }
    fclose(in);
    return 0;
}

int main(int argc, char **argv) {
    struct store store = {0};
    int failed = 0;
    for (int i = 1; i < argc; i++)
        if (load(&store, argv[i]) < 0)
            failed = 1;
    for (size_t i = 0; i < store.count; i++)
        printf("%zu. %s:%s", i + 1, store.notes[i]->key, store.notes[i]->text);
    store_free(&store);
    return failed;
}
