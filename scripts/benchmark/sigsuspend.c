// Lets valgrind 3.19 run a program whose main thread waits in libdispatch: valgrind changes the mask of sigsuspend(2) in
// its place, and libdispatch keeps that mask in memory that cannot be written.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>

int sigsuspend(const sigset_t *mask) {
  int (*const next)(const sigset_t *) = (int (*)(const sigset_t *))dlsym(RTLD_NEXT, "sigsuspend");
  sigset_t copy = *mask;
  return next(&copy);
}
