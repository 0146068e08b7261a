internal import Glibc
internal import Locking

/// The process groups of programs that must not outlive this process.
///
/// They are killed when this process exits, and when a signal terminates it after
/// `TemporaryFileRegistry.endWithSignals()` was called. SIGKILL leaves them behind.
public enum OwnedProcessGroups {
  private static let groups = LockedValue(Set<Int32>())

  /// Calls `spawn`, which starts a program as the leader of a new group and returns its process id. A signal during the
  /// call waits, so that it finds the group.
  public static func start(_ spawn: () -> Int32?) -> Int32? {
    _ = killsAtExit
    return groups.withLock { groups in
      let id = spawn()
      if let id { groups.insert(id) }
      return id
    }
  }

  /// Forgets the group `id`, whose leader has ended. Call it before waitpid(2): the number may belong to another group
  /// afterwards.
  public static func forget(_ id: Int32) { groups.withLock { _ = $0.remove(id) } }

  /// Kills every process of every group, then calls `body`. Until it returns, no group starts and `forget(_:)` waits:
  /// if `body` ends this process, no thread can report the killed programs as a failure of theirs first.
  static func killAll<Result>(_ body: () -> Result) -> Result {
    groups.withLock { groups in
      for id in groups { kill(-id, SIGKILL) }
      groups = []
      return body()
    }
  }

  private static let killsAtExit: Bool = atexit { OwnedProcessGroups.killAll {} } == 0
}
