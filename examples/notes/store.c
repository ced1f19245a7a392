#include <stdlib.h>
#include <string.h>

#include "notes.h"

struct note *note_parse(const char *line) {
    struct note *note = calloc(1, sizeof *note);
    if (!note)
        return NULL;

    const char *colon = strchr(line, ':');
    if (!colon)
        return NULL;

    note->key = strndup(line, (size_t)(colon - line));
    note->text = strdup(colon + 1);
    if (!note->key || !note->text) {
        note_free(note);
        return NULL;
    }
    return note;
}

void note_free(struct note *note) {
    free(note->key);
    free(note->text);
    free(note);
}

int store_add(struct store *store, struct note *note) {
    struct link *link = malloc(sizeof *link);
    if (!link)
        return -1;
    for (struct link *old = store->first; old; old = old->next)
        if (strcmp(old->note->key, note->key) == 0)
            return -1;
    link->note = note;
    link->next = store->first;
    store->first = link;
    return 0;
}

void store_free(struct store *store) {
    while (store->first) {
        struct link *link = store->first;
        store->first = link->next;
        note_free(link->note);
        free(link);
    }
}
