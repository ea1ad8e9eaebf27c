/* A clock that a test sets. Preloaded into a Redis server, it answers every question for the time of day with the eight
   bytes (Unix microseconds) in the file named by QUOTA_TEST_CLOCK; while they are 0, with the real time. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *set;

__attribute__((constructor)) static void attach(void) {
  const char *path = getenv("QUOTA_TEST_CLOCK");
  int fd = path ? open(path, O_RDONLY) : -1;
  if (fd < 0) return;
  void *page = mmap(0, 8, PROT_READ, MAP_SHARED, fd, 0);
  if (page != MAP_FAILED) set = page;
  close(fd);
}

int clock_gettime(clockid_t id, struct timespec *ts) {
  int64_t us = set && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE) ? *set : 0;
  if (!us) return syscall(SYS_clock_gettime, id, ts);
  ts->tv_sec = us / 1000000;
  ts->tv_nsec = us % 1000000 * 1000;
  return 0;
}

int gettimeofday(struct timeval *restrict tv, void *restrict tz) {
  struct timespec ts;
  (void)tz;
  clock_gettime(CLOCK_REALTIME, &ts);
  tv->tv_sec = ts.tv_sec;
  tv->tv_usec = ts.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *out) {
  struct timespec ts;
  clock_gettime(CLOCK_REALTIME, &ts);
  if (out) *out = ts.tv_sec;
  return ts.tv_sec;
}
