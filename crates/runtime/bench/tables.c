// What it costs to know whose a block is: AutoFix's table of addresses, at the sizes of its figure 10, against an owner in a
// variable. Nanoseconds for each block, on top of malloc and free; the median of several rounds, interleaved.
//   clang-19 -O2 crates/runtime/bench/tables.c -o /tmp/tables && /tmp/tables
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// A map with a list in each slot, as in the paper's section 3.6; a site has one of its own.
struct entry {
    void *block;
    struct entry *next, *older, *newer;
};

static struct entry **slots, *newest, *spare;
static size_t mask;

static void add(void *block) {
    struct entry *entry = spare;
    if (entry)
        spare = entry->next;
    else if (!(entry = malloc(sizeof *entry)))
        abort();
    struct entry **slot = &slots[((uintptr_t)block >> 4) & mask];
    *entry = (struct entry){block, *slot, newest, NULL};
    if (newest)
        newest->newer = entry;
    newest = *slot = entry;
}

static void forget(void *block) {
    for (struct entry **at = &slots[((uintptr_t)block >> 4) & mask]; *at; at = &(*at)->next) {
        struct entry *entry = *at;
        if (entry->block != block)
            continue;
        *at = entry->next;
        *(entry->newer ? &entry->newer->older : &newest) = entry->older;
        if (entry->older)
            entry->older->newer = entry->newer;
        entry->next = spare;
        spare = entry;
        return;
    }
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

enum { nothing, owner, table };

// `live` blocks at a time, released oldest first, as a queue of a server's requests would be.
static double run(int how, size_t live, size_t rounds) {
    void **blocks = calloc(live, sizeof *blocks);
    void *volatile *owners = calloc(live, sizeof *owners);
    if (!blocks || !owners)
        abort();
    double begin = now();
    for (size_t i = 0; i < rounds; i++) {
        size_t at = i % live;
        if (blocks[at]) {
            if (how == table)
                forget(blocks[at]);
            if (how == owner && owners[at] == blocks[at])
                owners[at] = NULL;
            free(blocks[at]);
        }
        blocks[at] = malloc(48);
        if (how == table)
            add(blocks[at]);
        if (how == owner)
            owners[at] = blocks[at];
    }
    double time = (now() - begin) / (double)rounds;
    for (size_t i = 0; i < live; i++) {
        if (how == table)
            forget(blocks[i]);
        free(blocks[i]);
    }
    free(blocks);
    free((void *)owners);
    return time;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(void) {
    static const size_t sizes[] = {1, 1 << 6, 1 << 8, 1 << 16}, lives[] = {1, 16, 256, 4096};
    enum { columns = 5, repeats = 9 };
    printf("live blocks   owner    2^0    2^6    2^8   2^16   (ns for each block)\n");
    for (size_t l = 0; l < 4; l++) {
        double times[columns][repeats];
        size_t rounds = lives[l] > 256 ? 20000 : 400000;
        for (int r = 0; r < repeats; r++) {
            double base = run(nothing, lives[l], rounds);
            times[0][r] = run(owner, lives[l], rounds) - base;
            for (int s = 0; s < 4; s++) {
                slots = calloc(sizes[s], sizeof *slots);
                mask = sizes[s] - 1;
                times[s + 1][r] = run(table, lives[l], rounds) - base;
                free(slots);
            }
        }
        printf("%11zu", lives[l]);
        for (int c = 0; c < columns; c++) {
            qsort(times[c], repeats, sizeof(double), compare);
            printf(" %6.1f", times[c][repeats / 2]);
        }
        printf("\n");
    }
    return 0;
}
