// SPDX-License-Identifier: Apache-2.0
// What GCC's headers and its standard library ask of a glibc newer than the wheel's, for the wheel alone.
#include <errno.h>
#include <pthread.h>
#include <time.h>

#define HIDDEN __attribute__((visibility("hidden")))

// glibc 2.32. Never "one thread only": reference counts are always atomic.
HIDDEN char __libc_single_threaded = 0;

// glibc 2.30: waits until a time of any clock. Here until the same moment of the clock that condition variables have;
// who waits looks at its own clock afterwards.
HIDDEN int pthread_cond_clockwait(pthread_cond_t *condition, pthread_mutex_t *mutex, clockid_t clock,
                                  const struct timespec *until) {
  if (clock == CLOCK_REALTIME) return pthread_cond_timedwait(condition, mutex, until);
  struct timespec now, deadline;
  if (clock_gettime(clock, &now) || clock_gettime(CLOCK_REALTIME, &deadline)) return EINVAL;
  deadline.tv_sec += until->tv_sec - now.tv_sec;
  deadline.tv_nsec += until->tv_nsec - now.tv_nsec;
  if (deadline.tv_nsec < 0) {
    deadline.tv_nsec += 1000000000;
    deadline.tv_sec--;
  } else if (deadline.tv_nsec >= 1000000000) {
    deadline.tv_nsec -= 1000000000;
    deadline.tv_sec++;
  }
  if (deadline.tv_sec < 0) return ETIMEDOUT;
  return pthread_cond_timedwait(condition, mutex, &deadline);
}
