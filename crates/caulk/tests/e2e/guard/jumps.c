// longjmp over frames that own blocks, and into one that does; fork while blocks are owned.
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static jmp_buf back;
static char *rescued;

static void fail(char *text) {
    rescued = text;
    longjmp(back, 1);
}

// What it owns is kept by somebody else when the frame is passed over, or lost with it.
static void middle(int how) {
    char *mine = strdup("middle");
    char *other = strdup("other");
    if (!mine || !other)
        abort();
    if (how == 1)
        fail(mine);
    if (how == 2)
        longjmp(back, 2);
    printf("%s %s\n", mine, other);
    free(mine);
}

static void outer(int how) {
    char *before = strdup("before");
    if (!before)
        abort();
    int came = setjmp(back);
    if (came == 0) {
        printf("%s\n", before);
        middle(how);
        puts("returned");
    } else {
        // Used again on the second return.
        printf("%d %s %s\n", came, before, rescued ? rescued : "-");
    }
    free(before);
    free(rescued);
    rescued = NULL;
}

static int child_and_parent(void) {
    char *shared = malloc(64);
    char *lost = malloc(64);
    if (!shared || !lost)
        abort();
    strcpy(shared, "shared");
    strcpy(lost, "lost");
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        printf("child %s %s\n", shared, lost);
        free(shared);
        return 7;
    }
    int status = 0;
    waitpid(child, &status, 0);
    printf("parent %s %s %d\n", shared, lost, WEXITSTATUS(status));
    free(shared);
    return 0;
}

int main(void) {
    for (int how = 0; how < 3; how++)
        outer(how);
    return child_and_parent();
}
