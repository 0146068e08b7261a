public import ArgumentParser
internal import Glibc

/// The option of a command of an operator that a signal can replace, for `ExecReload=` of a unit.
public struct SignalOption: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The process of the service: without an admin server it gets the signal, and the command does not wait.",
      valueName: "pid"))
  public var process: Int32?

  public init() {}

  public func validate() throws {
    // Others would be groups of processes.
    guard process.map({ $0 > 1 }) ?? true else { throw ValidationError("--process must be the id of a process") }
  }

  /// Sends `signal` to the process. Does nothing if none is named.
  ///
  /// - Parameter unit: The unit of the service, for the hint.
  /// - Throws: `Failure` if there is no such process, or if it is another user's.
  public func send(_ signal: Int32, to unit: String) throws(Failure) {
    guard let process, kill(process, signal) != 0 else { return }
    throw Failure(
      .unavailable, "process \(process): \(String(cString: strerror(errno)))",
      hint: "systemctl show --property=MainPID \(unit) names the process of the service")
  }
}
