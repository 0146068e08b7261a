// Ignores SIGHUP before main: a server that is reloaded by mistake, or right after its start, goes on serving.
//
// `main` is too late, because the dynamic linker and the constructors of shared libraries run for milliseconds before it.
// The functions of .preinit_array run before all constructors (System V ABI, "Initialization and Termination Functions"),
// and glibc calls them with the arguments of main. Before them only the linker itself runs. Other commands keep what a hangup does: a terminal that closes ends
// them.

#include "CHangup.h"

#include <signal.h>
#include <string.h>

static void ignore_hangup(int count, char **arguments, char **environment) {
  (void)environment;
  if (count > 1 && strcmp(arguments[1], "run") == 0) signal(SIGHUP, SIG_IGN);
}

__attribute__((section(".preinit_array"), used)) static void (*const before_all)(int, char **, char **) = ignore_hangup;
