#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Returns a copy, or nothing: then it loses it.
char *library_copy(const char *text, int good) {
    char *copy = strdup(text);
    if (!copy)
        return NULL;
    if (!good) {
        printf("bad %s\n", copy);
        return NULL;
    }
    return copy;
}
