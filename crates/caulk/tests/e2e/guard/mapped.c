// Private memory of a known size that is lost is unmapped; other mappings stay.
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { SIZE = 1 << 20 };
#define MAP(kind) mmap(NULL, SIZE, PROT_READ | PROT_WRITE, (kind) | MAP_ANONYMOUS, -1, 0)

static int lose(int really) {
  char *memory = MAP(MAP_PRIVATE);
  if (memory == MAP_FAILED)
    return -1;
  memory[0] = 'x';
  if (really)
    return memory[0];
  munmap(memory, SIZE);
  return 0;
}

static char *kept;
static void keep(void) {
  kept = MAP(MAP_PRIVATE);
  strcpy(kept, "kept");
}

// Of a child it may be.
static int share(void) {
  char *memory = MAP(MAP_SHARED);
  return memory[0];
}

// The rest of it is still there, and what was there may be somebody else's.
static char *part(void) {
  char *memory = MAP(MAP_PRIVATE);
  strcpy(memory + SIZE / 2, "part");
  munmap(memory, SIZE / 2);
  return memory + SIZE / 2;
}

static int fails(void) {
  char *memory = mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED;
}

static long megabytes(void) {
  long pages = 0;
  FILE *from = fopen("/proc/self/statm", "r");
  if (from && fscanf(from, "%ld", &pages) != 1)
    pages = 0;
  if (from)
    fclose(from);
  return pages / 256;
}

int main(void) {
  megabytes(); // what the library needs for itself
  long before = megabytes();
  lose(0);
  lose(1);
  printf("lost: %ld\n", megabytes() - before);
  before = megabytes();
  keep();
  share();
  char *rest = part();
  printf("%s %s %d: %s\n", kept, rest, fails(), megabytes() - before >= 2 ? "still there" : "gone");
  return 0;
}
