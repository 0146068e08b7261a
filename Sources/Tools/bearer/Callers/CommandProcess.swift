internal import Commands
internal import Dispatch
internal import Glibc
internal import Locking
internal import ProcessSignals

/// A command of the user's, which has the streams of this program.
final class CommandProcess: Sendable {
  private static let passedOn = [SIGTERM, SIGHUP, SIGUSR1, SIGUSR2]
  /// A terminal sends these to all its processes.
  private static let ofTerminal = [SIGINT, SIGQUIT]

  /// The signals for the command, from before it runs. After its end they end this program as usual.
  final class Signals: Sendable {
    private let heard: [Int32]
    private let state = LockedValue<(process: pid_t, early: [Int32])>((0, []))

    /// Signals that end a program are passed on to the command from now on. Of those that a terminal sends to both,
    /// this program takes no notice. Signals that the user's shell ignores stay ignored.
    init() {
      heard = (CommandProcess.passedOn + CommandProcess.ofTerminal).filter { !CommandProcess.isIgnored($0) }
      ProcessSignals.hear(heard) { [state] number in
        guard CommandProcess.passedOn.contains(number) else { return }
        state.withLock { state in
          if state.process > 0 { kill(state.process, number) } else { state.early.append(number) }
        }
      }
    }

    /// The command has ended: its number may soon be that of another process.
    fileprivate func end() {
      state.withLock { $0.process = 0 }
      ProcessSignals.obey(heard)
    }

    fileprivate func go(to process: pid_t) {
      state.withLock { state in
        state.process = process
        for number in state.early { kill(process, number) }
      }
    }
  }

  private let id: pid_t
  private let signals: Signals

  /// Starts `command`, which is looked for in PATH, with further variables.
  init(_ command: [String], variables: [String: String], signals: Signals) throws(Failure) {
    id = try Self.spawn(command, variables)
    self.signals = signals
    signals.go(to: id)
  }

  /// Waits for the end.
  ///
  /// - Returns: The exit code; 128 and the number of the signal that ended the command, as a shell has it.
  func exitCode() async -> Int32 {
    await withCheckedContinuation { continuation in
      // A call that blocks until then has a thread of its own.
      DispatchQueue(label: "command").async { [id, signals] in
        var status: Int32 = 0
        // The process is left for `waitpid` until no signal is sent to it any more.
        var information = siginfo_t()
        while waitid(P_PID, id_t(id), &information, WEXITED | WNOWAIT) < 0 && errno == EINTR {}
        signals.end()
        while waitpid(id, &status, 0) < 0 {
          guard errno != EINTR else { continue }
          // Without a status, success is not certain.
          status = 1 << 8
          break
        }
        let signal = status & 0x7F
        continuation.resume(returning: signal == 0 ? (status >> 8) & 0xFF : 128 + signal)
      }
    }
  }

  private static func spawn(_ command: [String], _ variables: [String: String]) throws(Failure) -> pid_t {
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var signals = sigset_t()
    sigemptyset(&signals)
    posix_spawnattr_setsigmask(&attributes, &signals)
    // This program ignores it, and the command is not to inherit that.
    sigaddset(&signals, SIGPIPE)
    posix_spawnattr_setsigdefault(&attributes, &signals)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
    var arguments: [UnsafeMutablePointer<CChar>?] = command.map { strdup($0) } + [nil]
    let added: [UnsafeMutablePointer<CChar>?] = variables.map { strdup("\($0.key)=\($0.value)") }
    defer { (arguments + added).forEach { free($0) } }
    var words = Environment.inherited(without: Array(variables.keys)) + added + [nil]
    var id: pid_t = 0
    let code = posix_spawnp(&id, command[0], nil, &attributes, &arguments, &words)
    guard code == 0 else {
      throw Failure(
        .noInput, "cannot start \(command[0]): \(String(cString: strerror(code)))", hint: "check its name and PATH")
    }
    return id
  }

  private enum Environment {
    /// The variables of this process, as `name=value`, without those of these names.
    ///
    /// They stay where they are: a value may be any bytes, which a text of Swift would repair.
    static func inherited(without names: [String]) -> [UnsafeMutablePointer<CChar>?] {
      var entries: [UnsafeMutablePointer<CChar>?] = []
      var next = environ
      while let entry = next.pointee {
        if !names.contains(where: { strncmp(entry, "\($0)=", $0.utf8.count + 1) == 0 }) { entries.append(entry) }
        next += 1
      }
      return entries
    }
  }

  private static func isIgnored(_ number: Int32) -> Bool {
    var action = sigaction()
    guard sigaction(number, nil, &action) == 0 else { return false }
    // SIG_IGN.
    return unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self) == 1
  }
}
