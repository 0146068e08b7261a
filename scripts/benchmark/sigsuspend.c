// Prevents an internal error of valgrind up to at least 3.19, which writes to the mask of sigsuspend; libdispatch
// keeps that mask in read-only memory. Load it with LD_PRELOAD.

#define _GNU_SOURCE
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

int sigsuspend(const sigset_t *mask) {
  sigset_t copy = *mask;
  return (int)syscall(SYS_rt_sigsuspend, &copy, 8);
}
