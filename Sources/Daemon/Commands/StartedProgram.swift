internal import Glibc

/// Starts programs that are not part of this project, such as a browser or a clipboard's.
///
/// A child inherits ignored signals, and this program ignores SIGPIPE: a shell script would then not end when its reader
/// has ended. A child of this type starts with the usual SIGPIPE, with no signal blocked, and with its three streams
/// alone. Signals that the user's shell ignores, as `nohup` does with SIGHUP, stay ignored.
public enum StartedProgram {
  /// Starts `command`, which is looked for in PATH.
  ///
  /// - Parameters:
  ///   - input: The descriptor that becomes its standard input; `nil` for `/dev/null`.
  ///   - output: The descriptor that becomes its standard output; `nil` for `/dev/null`.
  ///   - errors: The descriptor that becomes its standard error; `nil` for `/dev/null`.
  ///   - leadsGroup: Whether it is the leader of a new process group.
  /// - Returns: The id of the process, which the caller waits for; `nil` if there is no such program.
  public static func start(
    _ command: [String], reading input: Int32?, writing output: Int32?, errors: Int32? = nil,
    leadsGroup: Bool = false
  ) -> Int32? {
    closeOthersOnExec()
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    for (descriptor, target, mode) in [
      (input, STDIN_FILENO, O_RDONLY), (output, STDOUT_FILENO, O_WRONLY), (errors, STDERR_FILENO, O_WRONLY),
    ] {
      if let descriptor {
        posix_spawn_file_actions_adddup2(&actions, descriptor, target)
      } else {
        posix_spawn_file_actions_addopen(&actions, target, "/dev/null", mode, 0)
      }
    }
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var signals = sigset_t()
    sigemptyset(&signals)
    posix_spawnattr_setsigmask(&attributes, &signals)
    sigaddset(&signals, SIGPIPE)
    posix_spawnattr_setsigdefault(&attributes, &signals)
    var flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF
    if leadsGroup {
      posix_spawnattr_setpgroup(&attributes, 0)
      flags |= POSIX_SPAWN_SETPGROUP
    }
    posix_spawnattr_setflags(&attributes, Int16(flags))
    var id: pid_t = 0
    var arguments: [UnsafeMutablePointer<CChar>?] = command.map { strdup($0) } + [nil]
    defer { arguments.forEach { free($0) } }
    return posix_spawnp(&id, command[0], &actions, &attributes, &arguments, environ) == 0 ? id : nil
  }
  /// Lets no child inherit a descriptor other than those that become its streams: the port that waits for the browser, or
  /// one that this program has inherited itself.
  private static func closeOthersOnExec() {
    guard let folder = opendir("/proc/self/fd") else { return }
    defer { closedir(folder) }
    while let entry = readdir(folder) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) {
        $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      guard let descriptor = Int32(name), descriptor > STDERR_FILENO else { continue }
      _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    }
  }
}
