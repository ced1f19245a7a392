/* A tiny note keeper: "key: text" lines, kept in the order they came. */
#ifndef NOTES_H
#define NOTES_H

#include <stddef.h>

struct note {
    char *key;
    char *text;
};

struct store {
    struct note **notes;
    size_t count;
    size_t room;
};

/* A note from one line, or NULL if the line is none. */
struct note *note_parse(const char *line);
void note_free(struct note *note);

/* Takes the note over and returns 0; or returns -1 (key taken, no memory) and leaves it to the caller. */
int store_add(struct store *store, struct note *note);
void store_free(struct store *store);

#endif
