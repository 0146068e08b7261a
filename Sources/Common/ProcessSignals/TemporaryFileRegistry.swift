internal import CLinux
internal import Glibc
internal import Locking

/// Registry of temporary files next to their destinations, to be removed if they are not completed.
public enum TemporaryFileRegistry {
  private static let paths = LockedValue(Set<String>())

  /// From now on the file at `path` is unfinished; before it is made, so that there is no moment at which it is
  /// forgotten.
  static func begin(_ path: String) { paths.withLock { _ = $0.insert(path) } }

  /// Forgets the file at `path`, which is gone.
  static func forget(_ path: String) { paths.withLock { _ = $0.remove(path) } }

  /// Calls `body`, which moves the file at `path` to its destination. A signal during the call waits, so it finds the
  /// file either unfinished or complete.
  static func finish<Failure: Error>(_ path: String, _ body: () throws(Failure) -> Void) throws(Failure) {
    try paths.withLock { paths throws(Failure) in
      try body()
      paths.remove(path)
    }
  }

  /// From now on a signal that terminates the process first removes unfinished files, restores terminals whose mode
  /// was changed, and kills `OwnedProcessGroups`. Signals that the process ignores, as under nohup(1), stay ignored.
  public static func endWithSignals() {
    let numbers = [SIGINT, SIGTERM, SIGHUP].filter { !isIgnored($0) }
    ProcessSignals.hear(numbers) { number in
      TerminalMode.restoreAll()
      // Both locks are held until the exit: from here on no file is finished, and the end of no program is reported.
      OwnedProcessGroups.killAll {
        paths.withLock { paths in
          for path in paths { unlink(path) }
          ProcessSignals.obey([number])
          kill(getpid(), number)
          while true { pause() }
        }
      }
    }
  }

  private static func isIgnored(_ number: Int32) -> Bool { signals_is_ignored(number) == 1 }
}
