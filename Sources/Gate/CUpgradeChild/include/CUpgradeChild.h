#ifndef SALLYPORT_CUPGRADECHILD_H
#define SALLYPORT_CUPGRADECHILD_H

#include <stddef.h>
#include <sys/types.h>

/// Starts the program at `path` as a child with the standard streams of this process, the `count` descriptors from 3
/// on, and no other one. Every signal has its default disposition there, and none is blocked.
///
/// The child writes its process id into `own_id`, a place of `own_id_size` bytes within a string of `environment`,
/// before the program begins: LISTEN_PID of sd_listen_fds(3). The memory of this process stays as it is.
///
/// Returns the child's process id once the program runs, or -1 with `errno`; then there is no child.
pid_t upgrade_child_start(const char *path, char *const arguments[], char *const environment[], const int *descriptors,
                      int count, char *own_id, size_t own_id_size);

/// A pipe whose ends no program gets that is started later; 0, or -1 with `errno`.
int upgrade_child_pipe(int ends[2]);

#endif
