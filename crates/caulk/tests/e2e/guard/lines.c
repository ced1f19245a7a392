// Blocks that come through an argument: `getline` makes what lies there larger, `asprintf` puts a new one there.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static FILE *text(void) {
  FILE *file = tmpfile();
  if (!file)
    exit(1);
  for (int i = 1; i < 6; i++) {
    for (int n = 0; n < i * 60; n++)
      putc('a' + i, file);
    putc('\n', file);
  }
  rewind(file);
  return file;
}

// The buffer is lost at the end.
static size_t lost(void) {
  FILE *file = text();
  char *line = NULL;
  size_t room = 0, sum = 0;
  while (getline(&line, &room, file) != -1)
    sum += strlen(line);
  fclose(file);
  return sum;
}

static size_t released(void) {
  FILE *file = text();
  char *line = NULL;
  size_t room = 0, sum = 0;
  while (getline(&line, &room, file) != -1)
    sum += strlen(line);
  free(line);
  fclose(file);
  return sum;
}

// Every line is kept by somebody; the last, empty one is lost.
static char *kept[8];

static size_t handed_over(void) {
  FILE *file = text();
  char *line = NULL;
  size_t room = 0, count = 0;
  while (getline(&line, &room, file) != -1) {
    kept[count++] = line;
    line = NULL;
    room = 0;
  }
  fclose(file);
  return count;
}

// The first buffer is somebody else's, and made larger.
static char *own;

static void somebody_elses(void) {
  FILE *file = text();
  size_t room = 8;
  own = malloc(room);
  char *line = own;
  for (int i = 0; i < 3; i++)
    if (getline(&line, &room, file) == -1)
      break;
  own = line;
  fclose(file);
}

static void printed(int number) {
  char *line;
  if (asprintf(&line, "number %d", number) < 0)
    return;
  puts(line);
  if (number % 2)
    free(line);
}

int main(void) {
  printf("%zu %zu\n", lost(), released());
  size_t count = handed_over();
  for (size_t i = 0; i < count; i++) {
    printf("%zu\n", strlen(kept[i]));
    free(kept[i]);
  }
  somebody_elses();
  printf("%zu\n", strlen(own));
  free(own);
  for (int i = 0; i < 4; i++)
    printed(i);
  return 0;
}
