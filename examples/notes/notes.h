/* A tiny note keeper: "key: text" lines, the newest first. */
#ifndef NOTES_H
#define NOTES_H

struct note {
    char *key;
    char *text;
};

struct link {
    struct note *note;
    struct link *next;
};

struct store {
    struct link *first;
};

/* A note from one line, or NULL if the line is none. */
struct note *note_parse(const char *line);
void note_free(struct note *note);

/* Takes the note over and returns 0; or returns -1 (key taken, no memory) and leaves it to the caller. */
int store_add(struct store *store, struct note *note);
void store_free(struct store *store);

#endif
