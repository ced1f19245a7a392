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
    for (size_t i = 0; i < store->count; i++)
        if (strcmp(store->notes[i]->key, note->key) == 0)
            return -1;

    if (store->count == store->room) {
        size_t room = store->room ? 2 * store->room : 4;
        store->notes = realloc(store->notes, room * sizeof *store->notes);
        if (!store->notes)
            return -1;
        store->room = room;
    }
    store->notes[store->count++] = note;
    return 0;
}

void store_free(struct store *store) {
    for (size_t i = 0; i < store->count; i++)
        note_free(store->notes[i]);
    free(store->notes);
}
