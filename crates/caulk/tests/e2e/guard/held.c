// Descriptors that nobody can name any more, and that are of use all the same: a correct program, but for one.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

static int lock(const char *path, int how) {
  int file = open(path, O_CREAT | O_RDWR, 0600);
  if (file < 0)
    return -1;
  // Where it fails, the descriptor is lost.
  return flock(file, how | LOCK_NB);
}

// The lowest number there is.
static void detach(void) {
  close(0);
  open("/dev/null", O_RDONLY);
}

static int lowest(void) {
  int file = open("/dev/null", O_RDONLY);
  close(file);
  return file > 2;
}

static void replace(void) {
  fclose(stdin);
  FILE *in = fopen("/dev/null", "r");
  if (in)
    printf("%d\n", fileno(in));
}

int main(void) {
  printf("%d\n", lock("held", LOCK_EX));
  int again = lock("held", LOCK_EX);
  printf("%d %d\n", again, errno == EWOULDBLOCK);
  detach();
  printf("%d\n", lowest());
  replace();
  printf("%d\n", lowest());
  return 0;
}
