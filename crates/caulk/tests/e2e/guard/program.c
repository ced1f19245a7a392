#include <stdio.h>
#include <stdlib.h>

char *library_copy(const char *text, int good);

static int both(void) {
    char *good = library_copy("one", 1);
    library_copy("two", 0);
    char *lost = library_copy("three", 1);
    if (!good || !lost)
        return 1;
    printf("%s %s\n", good, lost);
    free(good);
    return 0;
}

int main(void) {
    int failed = both();
    puts("done");
    return failed;
}
