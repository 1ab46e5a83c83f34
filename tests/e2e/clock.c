/* The host's clock as the processes of a stack see it: preloaded, it adds a difference, which a test
   changes while they run. The monotonic clock, by which they wait, is left alone.

   The file that SHIFTED_CLOCK names has the difference in seconds, as a signed 64-bit integer. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

/* A deadline above it is of the host's clock, below it of the monotonic clock. */
#define MONOTONIC_BELOW 1000000000

static int64_t difference(void) {
  static const volatile int64_t *shared;
  if (!shared) {
    const char *path = getenv("SHIFTED_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return 0;
    void *found = mmap(0, sizeof *shared, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (found == MAP_FAILED) return 0;
    shared = found;
  }
  return *shared;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  int failed = (int)syscall(SYS_clock_gettime, clock, now);
  if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
    now->tv_sec += difference();
  return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  (void)zone;
  struct timespec found;
  clock_gettime(CLOCK_REALTIME, &found);
  now->tv_sec = found.tv_sec;
  now->tv_usec = found.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *now) {
  struct timespec found;
  clock_gettime(CLOCK_REALTIME, &found);
  if (now) *now = found.tv_sec;
  return found.tv_sec;
}

static struct timespec of_the_host(const struct timespec *deadline) {
  struct timespec found = *deadline;
  if (found.tv_sec > MONOTONIC_BELOW) found.tv_sec -= difference();
  return found;
}

/* The library has an older function of this name, with another kind of condition. */
static void *newest(const char *name) {
  static const char *const versions[] = {"GLIBC_2.3.2", "GLIBC_2.17"};
  for (unsigned one = 0; one < 2; one++) {
    void *found = dlvsym(RTLD_NEXT, name, versions[one]);
    if (found) return found;
  }
  return dlsym(RTLD_NEXT, name);
}

int pthread_cond_timedwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict deadline) {
  static int (*next)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
  if (!next) next = newest("pthread_cond_timedwait");
  struct timespec until = of_the_host(deadline);
  return next(condition, mutex, &until);
}

int cnd_timedwait(cnd_t *restrict condition, mtx_t *restrict mutex,
                  const struct timespec *restrict deadline) {
  static int (*next)(cnd_t *, mtx_t *, const struct timespec *);
  if (!next) next = dlsym(RTLD_NEXT, "cnd_timedwait");
  struct timespec until = of_the_host(deadline);
  return next(condition, mutex, &until);
}

int pthread_mutex_timedlock(pthread_mutex_t *restrict mutex,
                            const struct timespec *restrict deadline) {
  static int (*next)(pthread_mutex_t *, const struct timespec *);
  if (!next) next = dlsym(RTLD_NEXT, "pthread_mutex_timedlock");
  struct timespec until = of_the_host(deadline);
  return next(mutex, &until);
}

int sem_timedwait(sem_t *restrict semaphore, const struct timespec *restrict deadline) {
  static int (*next)(sem_t *, const struct timespec *);
  if (!next) next = dlsym(RTLD_NEXT, "sem_timedwait");
  struct timespec until = of_the_host(deadline);
  return next(semaphore, &until);
}
