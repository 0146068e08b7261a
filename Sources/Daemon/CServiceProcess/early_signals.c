// Not in Swift's main: the initializers of the Swift runtime, Foundation and ICU run before it and take tens of
// milliseconds. Functions in `.preinit_array` run before those (System V ABI, "Initialization and Termination
// Functions"), and glibc passes them main's arguments.

#include "CEarlySignals.h"

#include <signal.h>
#include <string.h>

static void ignore_reload_signals(int count, char **arguments, char **environment) {
  (void)environment;
  if (count < 2 || (strcmp(arguments[1], "run") != 0 && strcmp(arguments[1], "dev") != 0)) return;
  signal(SIGHUP, SIG_IGN);
  signal(SIGUSR2, SIG_IGN);
}

__attribute__((section(".preinit_array"), used)) static void (*const early)(int, char **, char **) =
    ignore_reload_signals;
