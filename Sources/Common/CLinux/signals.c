// The signal handler: it writes the number of the signal to a pipe.
//
// It is in C because a handler may call only async-signal-safe functions (signal-safety(7)), and Swift code gives no
// such guarantee.

#define _GNU_SOURCE
#include "CSignals.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

// Set before the first handler, and never again.
static int writer = -1;

static void leave_number(int number) {
  const int before = errno;
  const unsigned char byte = (unsigned char)number;
  (void)!write(writer, &byte, 1);
  errno = before;
}

int signals_open(void) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return -1;
  writer = ends[1];
  return ends[0];
}

int signals_catch(int number) {
  struct sigaction action = {.sa_handler = leave_number, .sa_flags = SA_RESTART};
  sigemptyset(&action.sa_mask);
  return sigaction(number, &action, 0);
}

int signals_is_ignored(int number) {
  struct sigaction action;
  if (sigaction(number, 0, &action) != 0) return 0;
  return !(action.sa_flags & SA_SIGINFO) && action.sa_handler == SIG_IGN;
}
