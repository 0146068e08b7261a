#ifndef SALLYPORT_CLINUX_SHIM_H
#define SALLYPORT_CLINUX_SHIM_H

// What Swift's Glibc module leaves out of Linux: epoll, eventfd, accept4 and name resolution.

#include <errno.h>
#include <netdb.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

// Declared by <sys/socket.h> only with _GNU_SOURCE, which is too late to define here.
extern int accept4(int fd, struct sockaddr *address, socklen_t *length, int flags);

static const uint32_t shim_EPOLLIN = EPOLLIN;
static const uint32_t shim_EPOLLOUT = EPOLLOUT;
static const uint32_t shim_EPOLLERR = EPOLLERR;
static const uint32_t shim_EPOLLHUP = EPOLLHUP;

static inline int shim_epoll_create(void) { return epoll_create1(EPOLL_CLOEXEC); }
static inline int shim_eventfd(void) { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }
static inline int shim_accept(int fd, struct sockaddr *address, socklen_t *length) {
  return accept4(fd, address, length, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

// `operation` is EPOLL_CTL_ADD, EPOLL_CTL_MOD or EPOLL_CTL_DEL.
static inline int shim_epoll_ctl(int epoll, int operation, int fd, uint32_t events, uint64_t data) {
  struct epoll_event event = {.events = events, .data = {.u64 = data}};
  return epoll_ctl(epoll, operation, fd, &event);
}

#endif
