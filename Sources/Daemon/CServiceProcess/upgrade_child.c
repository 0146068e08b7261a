// Starts a program with its own process id in its environment, which posix_spawn(3) cannot do, and as a grandchild,
// so that it can become a child of process 1 before this process ends.
//
// Written in C: after fork, a process with threads may only call async-signal-safe functions (signal-safety(7)), and
// Swift code gives no such guarantee.

#define _GNU_SOURCE
#include "CUpgradeChild.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
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

// Swift does not see this extension of glibc.
int upgrade_child_close_from(void *actions, int first) {
  return posix_spawn_file_actions_addclosefrom_np(actions, first);
}

int upgrade_child_pipe(int ends[2]) { return pipe2(ends, O_CLOEXEC); }

int upgrade_child_socket_pair(int ends[2]) { return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends); }

// Closes every descriptor except `kept`, which gets the number 0, and returns that number. A waiter that kept copies of
// clients' sockets would delay their end, and one with the standard streams would delay that of the log.
static int close_all_but(int kept) {
  if (kept != 0) dup2(kept, 0);
  if (close_range(1, ~0U, 0) == 0) return 0;
  // Linux before 5.9.
  struct rlimit limit;
  const int count = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < 1 << 20 ? (int)limit.rlim_cur : 1 << 20;
  for (int number = 1; number < count; number++) close(number);
  return 0;
}

// Reports the end of `child` on the socket `life`, and exits when the other end is closed. Does not reap the child
// before, so that its process id stays its own for as long as the other end may send it a signal.
static _Noreturn void wait_for(pid_t child, int life) {
  life = close_all_but(life);
  // -1 before Linux 5.3, or if a filter refuses the call; poll(2) then skips it.
  const int end = (int)syscall(SYS_pidfd_open, child, 0);
  for (;;) {
    struct pollfd wanted[2] = {{.fd = life, .events = POLLIN}, {.fd = end, .events = POLLIN}};
    if (poll(wanted, 2, end < 0 ? 50 : -1) < 0 && errno != EINTR) break;
    if (wanted[0].revents) break;
    siginfo_t info;
    info.si_pid = 0;
    if (waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT) != 0) break;
    if (info.si_pid != child) continue;
    const struct upgrade_child_end told = {info.si_code == CLD_EXITED, info.si_status};
    (void)!send(life, &told, sizeof told, MSG_NOSIGNAL);
    struct pollfd other = {.fd = life, .events = POLLIN};
    while (poll(&other, 1, -1) < 0 && errno == EINTR) {}
    break;
  }
  waitpid(child, 0, WNOHANG);
  _exit(0);
}

// What the waiter reports first: the process id, or the number of an error.
struct start {
  pid_t id;
  int error;
};

int upgrade_child_start(const char *path, char *const arguments[], char *const environment[], const int *descriptors,
                        int count, char *own_id, size_t own_id_size, struct upgrade_child *child) {
  int report[2], life[2];
  if (upgrade_child_pipe(report) != 0) return -1;
  if (upgrade_child_socket_pair(life) != 0) {
    const int number = errno;
    close(report[0]);
    close(report[1]);
    errno = number;
    return -1;
  }
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t waiter = fork();
  if (waiter == 0) {
    // If it stayed ignored, the kernel would reap the program, and neither its end nor its process id would be certain.
    signal(SIGCHLD, SIG_DFL);
    // _Fork(3) is async-signal-safe, and fork(3) is not.
    const pid_t id = _Fork();
    if (id == 0) {
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
    const struct start start = {id, errno};
    (void)!send(life[1], &start, sizeof start, MSG_NOSIGNAL);
    if (id < 0) _exit(127);
    wait_for(id, life[1]);
  }
  const int fork_error = errno;
  pthread_sigmask(SIG_SETMASK, &before, 0);
  close(report[1]);
  close(life[1]);
  struct start start = {-1, fork_error};
  int number = 0;
  ssize_t told = 0;
  if (waiter > 0) {
    ssize_t length;
    while ((length = recv(life[0], &start, sizeof start, MSG_WAITALL)) < 0 && errno == EINTR) {}
    if (length != sizeof start) start = (struct start){-1, ECHILD};
    if (start.id > 0) {
      while ((told = read(report[0], &number, sizeof number)) < 0 && errno == EINTR) {}
    }
  }
  close(report[0]);
  if (start.id <= 0 || told > 0) {
    close(life[0]);
    if (waiter > 0) upgrade_child_reap(waiter);
    errno = start.id <= 0 ? start.error : number;
    return -1;
  }
  *child = (struct upgrade_child){.id = start.id, .waiter = waiter, .life = life[0]};
  return 0;
}

void upgrade_child_reap(pid_t waiter) {
  while (waitpid(waiter, 0, 0) < 0 && errno == EINTR) {}
}
