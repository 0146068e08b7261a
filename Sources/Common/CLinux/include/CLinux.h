#ifndef SALLYPORT_CLINUX_SHIM_H
#define SALLYPORT_CLINUX_SHIM_H

// What Swift's Glibc module leaves out of Linux: epoll, eventfd, timerfd, accept4, getrandom, name resolution, the
// processors of a process, the names and the scheduling of threads, and the protection of a process that has secrets
// from being dumped.

#include <errno.h>
#include <netdb.h>
#include <sched.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>

// Declared by <sys/socket.h> only with _GNU_SOURCE, which is too late to define here.
extern int accept4(int fd, struct sockaddr *address, socklen_t *length, int flags);

// The same for <sched.h>: the set of processors on which the thread `id` may run, one bit each; 0 is the caller.
extern int sched_getaffinity(pid_t id, size_t size, void *set);

// <sys/timerfd.h> would bring types along that Swift knows from Glibc, and take them away from it.
struct shim_timer_times {
  int64_t interval_seconds, interval_nanoseconds, first_seconds, first_nanoseconds;
};
extern int timerfd_create(int clock, int flags);
extern int timerfd_settime(int timer, int flags, const struct shim_timer_times *times, struct shim_timer_times *old);

static const uint32_t shim_EPOLLIN = EPOLLIN;
static const uint32_t shim_EPOLLOUT = EPOLLOUT;
static const uint32_t shim_EPOLLERR = EPOLLERR;
static const uint32_t shim_EPOLLHUP = EPOLLHUP;
static const uint32_t shim_EPOLLET = EPOLLET;
static const uint32_t shim_EPOLLEXCLUSIVE = EPOLLEXCLUSIVE;

static inline int shim_epoll_create(void) { return epoll_create1(EPOLL_CLOEXEC); }
static inline int shim_eventfd(void) { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }
/// A timer that expires every `interval` nanoseconds, from one interval from now on; -1 with `errno` if there is none.
static inline int shim_timerfd(int64_t interval) {
  const int64_t seconds = interval / 1000000000, rest = interval % 1000000000;
  const struct shim_timer_times times = {seconds, rest, seconds, rest};
  // CLOCK_MONOTONIC; TFD_CLOEXEC and TFD_NONBLOCK have the values of EFD_CLOEXEC and EFD_NONBLOCK.
  int timer = timerfd_create(1, EFD_CLOEXEC | EFD_NONBLOCK);
  if (timer >= 0) timerfd_settime(timer, 0, &times, 0);
  return timer;
}
static inline int shim_accept(int fd, struct sockaddr *address, socklen_t *length) {
  return accept4(fd, address, length, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

// `operation` is EPOLL_CTL_ADD, EPOLL_CTL_MOD or EPOLL_CTL_DEL.
static inline int shim_epoll_ctl(int epoll, int operation, int fd, uint32_t events, uint64_t data) {
  struct epoll_event event = {.events = events, .data = {.u64 = data}};
  return epoll_ctl(epoll, operation, fd, &event);
}

// prctl is variadic, which Swift cannot call.
static inline int shim_forbid_dumps(void) { return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); }
/// Gives the calling thread the first 15 bytes of `name` as its name.
static inline void shim_name_thread(const char *name) { prctl(PR_SET_NAME, name, 0, 0, 0); }
/// Lets the calling thread interrupt no other thread when it wakes up; no effect if the system does not permit it.
static inline void shim_schedule_as_batch(void) {
  const struct sched_param parameters = {.sched_priority = 0};
  // SCHED_BATCH, which <sched.h> defines only with _GNU_SOURCE.
  sched_setscheduler(0, 3, &parameters);
}

#endif
