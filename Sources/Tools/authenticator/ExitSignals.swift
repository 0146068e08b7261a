internal import Glibc

/// Lets a screen be left in order when a signal asks the process to exit.
enum ExitSignals {
  // A signal handler may write one flag of this kind and nothing else.
  nonisolated(unsafe) private static var flag: sig_atomic_t = 0

  /// Whether one arrived.
  static var heard: Bool { flag != 0 }

  /// Hears SIGTERM, SIGHUP and SIGINT from now on. A wait for a key then ends early.
  static func hear() {
    var action = sigaction()
    action.__sigaction_handler.sa_handler = { _ in ExitSignals.flag = 1 }
    for number in [SIGTERM, SIGHUP, SIGINT] { sigaction(number, &action, nil) }
  }
}
