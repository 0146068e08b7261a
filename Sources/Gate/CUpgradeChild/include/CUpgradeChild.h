#ifndef SALLYPORT_CUPGRADECHILD_H
#define SALLYPORT_CUPGRADECHILD_H

#include <stddef.h>
#include <sys/types.h>

/// Starts the program at `path` as a child. It inherits the standard streams and the `count` descriptors, numbered
/// from 3 on, and no others. Every signal has its default disposition, and none is blocked.
///
/// Before the program starts, the child writes its process id into `own_id`, a buffer of `own_id_size` bytes within a
/// string of `environment`: LISTEN_PID of sd_listen_fds(3). The memory of this process does not change.
///
/// Returns the child's process id once the program runs, or -1 with `errno`; there is then no child.
pid_t upgrade_child_start(const char *path, char *const arguments[], char *const environment[], const int *descriptors,
                      int count, char *own_id, size_t own_id_size);

/// Creates a pipe whose ends are not inherited by programs. Returns 0, or -1 with `errno`.
int upgrade_child_pipe(int ends[2]);

#endif
