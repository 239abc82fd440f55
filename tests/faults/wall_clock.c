// wall_clock: loaded into a process (LD_PRELOAD), moves what it reads as the wall clock by the seconds written in the
// file that SLUICE_TEST_CLOCK names. The file is read at each look, so that the clock can jump while the process runs.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static time_t Jump(void) {
  const char* path = getenv("SLUICE_TEST_CLOCK");
  if (path == NULL) return 0;
  char text[32] = "";
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  ssize_t n = read(fd, text, sizeof(text) - 1);
  close(fd);
  return n > 0 ? atoll(text) : 0;
}

int clock_gettime(clockid_t clock, struct timespec* now) {
  if (syscall(SYS_clock_gettime, clock, now) != 0) return -1;
  if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) now->tv_sec += Jump();
  return 0;
}

int gettimeofday(struct timeval* restrict now, void* restrict zone) {
  (void)zone;
  struct timespec at;
  clock_gettime(CLOCK_REALTIME, &at);
  now->tv_sec = at.tv_sec;
  now->tv_usec = at.tv_nsec / 1000;
  return 0;
}

time_t time(time_t* into) {
  struct timespec at;
  clock_gettime(CLOCK_REALTIME, &at);
  if (into != NULL) *into = at.tv_sec;
  return at.tv_sec;
}
