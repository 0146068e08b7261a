internal import FoundationEssentials
internal import GateService
internal import Glibc
internal import Locking
internal import Logging
internal import Observability
internal import ProcessFrame
internal import TransportEngine

extension GateServer {
  /// How long the new process may take to become ready. Shorter than the timeout of the operator's command.
  private static let patience = Duration.seconds(25)

  /// Starts the executable of this process again, and hands over to the new process once it serves.
  ///
  /// The new process inherits every listening socket, so no connection is refused. If the new process fails to start,
  /// this process continues to serve; the outcome and the log give the reason. Only one upgrade runs at a time.
  func upgrade(because reason: String) async -> UpgradeOutcome {
    let outcome = await tryUpgrade()
    switch outcome {
    case .done(let id):
      logger.notice(
        "upgrade completed", metadata: ["reason": "\(reason)", "process": .number(id), "program": "\(program.path)"])
    case .refused(let fault):
      logger.error(
        "upgrade failed: this process continues to serve",
        metadata: ["reason": "\(reason)", "program": "\(program.path)", "fault": "\(fault)"])
    }
    return outcome
  }

  private func tryUpgrade() async -> UpgradeOutcome {
    guard getpid() != 1 else {
      return .refused("this process is PID 1, so its container would stop with it: start another container")
    }
    let earlier = life.withLock { life in
      defer { if case .serving = life { life = .upgrading(nil) } }
      return life
    }
    switch earlier {
    case .serving: break
    case .upgrading: return .refused("an upgrade is already in progress")
    case .leaving: return .refused("the gate is shutting down")
    }
    defer { continueUpgrade(.serving) }
    let sockets = await socketCopies()
    let child: UpgradeChild
    do throws(UpgradeChild.StartError) {
      defer { for socket in sockets { close(socket.descriptor) } }
      // A gate that began to leave meanwhile would not know of a new process. From here on nothing waits until it does.
      guard case .upgrading = life.withLock(\.self) else { return .refused("the gate is shutting down") }
      child = try UpgradeChild.start(program, passing: sockets, environment: ProcessInfo.processInfo.environment)
    } catch {
      return .refused(error.description)
    }
    continueUpgrade(.upgrading(child))
    guard case .failed(let fault) = await child.verdict(within: Self.patience) else {
      guard stops.request(.replaced(by: child)) else {
        child.end()
        return .refused("the gate is shutting down")
      }
      return .done(process: child.id)
    }
    return .refused(fault.split(whereSeparator: \.isNewline).joined(separator: "\n"))
  }

  /// Changes from an upgrade in progress to `next`. A gate that leaves goes on leaving. A new process of which it does
  /// not know ends all the same, because the request to be replaced is refused.
  private func continueUpgrade(_ next: Life) {
    life.withLock { if case .upgrading = $0 { $0 = next } }
  }

  /// Copies of all sockets for the new process, with their names.
  private func socketCopies() async -> [(name: String, descriptor: Int32)] {
    var sockets: [(name: String, descriptor: Int32)] = []
    for (listener, engine) in [(listener: .gate, engine: engine)] + side.named {
      for copy in await engine.socketCopies() { sockets.append((listener.rawValue, copy)) }
    }
    return sockets + lingering.copies()
  }
}
