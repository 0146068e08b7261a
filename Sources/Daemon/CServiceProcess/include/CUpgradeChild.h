#ifndef SALLYPORT_CUPGRADECHILD_H
#define SALLYPORT_CUPGRADECHILD_H

#include <stddef.h>
#include <sys/types.h>

/// A program that was started, and the process between it and this one.
struct upgrade_child {
  /// The process id of the program.
  pid_t id;
  /// The child of this process whose child the program is. It reaps the program.
  pid_t waiter;
  /// A socket on which the waiter writes an `upgrade_child_end`. When it is closed, the waiter exits, and the program
  /// becomes a child of process 1, or of the nearest subreaper (PR_SET_CHILD_SUBREAPER).
  int life;
};

/// How the program ended.
struct upgrade_child_end {
  /// 1 if it exited, 0 if a signal killed it.
  int has_exited;
  /// The exit status, or the number of the signal.
  int status;
};

/// Starts the program at `path` as a grandchild. It inherits the standard streams and the `count` descriptors, numbered
/// from 3 on, and no others. Every signal has its default disposition, and none is blocked.
///
/// Before the program starts, the grandchild writes its process id into `own_id`, a buffer of `own_id_size` bytes
/// within a string of `environment`: LISTEN_PID of sd_listen_fds(3). The memory of this process does not change.
///
/// Returns 0 and fills in `child` once the program runs, or -1 with `errno`; there is then no child.
int upgrade_child_start(const char *path, char *const arguments[], char *const environment[], const int *descriptors,
                        int count, char *own_id, size_t own_id_size, struct upgrade_child *child);

/// Waits until the waiter has exited. Close `life` first.
void upgrade_child_reap(pid_t waiter);

/// Makes posix_spawn(3) close all descriptors from `first` on in the new process. `actions` is a
/// `posix_spawn_file_actions_t`. Returns 0, or the number of an error.
int upgrade_child_close_from(void *actions, int first);

/// Creates a pipe whose ends are not inherited by programs. Returns 0, or -1 with `errno`.
int upgrade_child_pipe(int ends[2]);

/// Creates two connected stream sockets that are not inherited by programs. Returns 0, or -1 with `errno`.
int upgrade_child_socket_pair(int ends[2]);

#endif
