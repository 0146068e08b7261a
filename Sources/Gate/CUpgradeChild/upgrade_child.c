// Starts a program with its own process id in its environment, which posix_spawn(3) cannot do.
//
// Written in C: between fork and exec, a process with threads may only call async-signal-safe functions
// (signal-safety(7)), and Swift code gives no such guarantee.

#define _GNU_SOURCE
#include "CUpgradeChild.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC (1U << 2)
#endif

enum { first = 3 };

// Writes `id` in decimal; returns 0 if the number and a terminating zero do not fit.
static int write_id(pid_t id, char *place, size_t size) {
  char digits[24];
  size_t count = 0;
  for (; id > 0; id /= 10) digits[count++] = (char)('0' + id % 10);
  if (!place || count == 0 || count + 1 > size) return 0;
  for (size_t i = 0; i < count; i++) place[i] = digits[count - 1 - i];
  place[count] = 0;
  return 1;
}

// First copies all descriptors above the target range: a source may have the number of another one's target.
static int place_descriptors(const int *descriptors, int count) {
  int copies[1024];
  if (count < 0 || count > 1024) return 0;
  for (int i = 0; i < count; i++) {
    copies[i] = fcntl(descriptors[i], F_DUPFD_CLOEXEC, first + count);
    if (copies[i] < 0) return 0;
  }
  for (int i = 0; i < count; i++) {
    if (dup2(copies[i], first + i) < 0) return 0;
  }
  return 1;
}

static void reset_signals(void) {
  for (int number = 1; number < NSIG; number++) signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, 0);
}

int upgrade_child_pipe(int ends[2]) { return pipe2(ends, O_CLOEXEC); }

pid_t upgrade_child_start(const char *path, char *const arguments[], char *const environment[], const int *descriptors,
                      int count, char *own_id, size_t own_id_size) {
  int report[2];
  if (upgrade_child_pipe(report) != 0) return -1;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t child = fork();
  if (child == 0) {
    // Above the target range of the descriptors.
    const int writer = fcntl(report[1], F_DUPFD_CLOEXEC, first + count);
    if (writer >= 0 && write_id(getpid(), own_id, own_id_size) && place_descriptors(descriptors, count)) {
      // Descriptors that were opened without O_CLOEXEC must not reach the program. Old kernels lack close_range(2).
      close_range((unsigned)(first + count), ~0U, CLOSE_RANGE_CLOEXEC);
      reset_signals();
      execve(path, arguments, environment);
    }
    const int number = errno;
    (void)!write(writer, &number, sizeof number);
    _exit(127);
  }
  const int fork_error = errno;
  pthread_sigmask(SIG_SETMASK, &before, 0);
  close(report[1]);
  int number = 0;
  ssize_t told = 0;
  if (child > 0) {
    while ((told = read(report[0], &number, sizeof number)) < 0 && errno == EINTR) {}
  }
  close(report[0]);
  if (child < 0 || told > 0) {
    if (child > 0) waitpid(child, 0, 0);
    errno = child < 0 ? fork_error : number;
    return -1;
  }
  return child;
}
