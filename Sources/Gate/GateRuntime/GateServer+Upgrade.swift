internal import FoundationEssentials
internal import GateService
internal import Glibc
internal import Locking
internal import Logging
internal import GracefulUpgrade
internal import TransportEngine

extension GateServer {
  /// How long a child may take until it serves. Shorter than an operator's command waits for its answer.
  private static let patience = Duration.seconds(25)

  /// Starts the program again, from the path of this process, and hands over to it once it serves.
  ///
  /// The new process inherits every listening socket, so no client is refused meanwhile. If it does not come to
  /// serve, this gate continues unchanged, and the outcome and the log say why. Only one upgrade runs at a time.
  func upgrade(because reason: String) async -> UpgradeOutcome {
    let outcome = await tryUpgrade()
    switch outcome {
    case .done(let id):
      logger.notice("upgraded", metadata: ["reason": "\(reason)", "process": "\(id)", "program": "\(program.path)"])
    case .refused(let fault):
      logger.error(
        "not upgraded: this process serves on",
        metadata: ["reason": "\(reason)", "program": "\(program.path)", "fault": "\(fault)"])
    }
    return outcome
  }

  private func tryUpgrade() async -> UpgradeOutcome {
    guard getpid() != 1 else {
      return .refused("this is the first process of its container, which ends with it: start another container")
    }
    guard !isUpgrading else { return .refused("an upgrade is on its way already") }
    guard !isLeaving.withLock(\.self) else { return .refused("the gate is about to stop") }
    isUpgrading = true
    defer { isUpgrading = false }
    let child: UpgradeChild
    do throws(UpgradeChild.StartFault) {
      child = try await startUpgradeChild()
    } catch {
      return .refused(error.description)
    }
    candidate = child
    defer { candidate = nil }
    guard case .failed(let fault) = await child.verdict(within: Self.patience) else {
      guard stops.request(.replaced(by: child.id)) else {
        child.end()
        return .refused("the gate is about to stop")
      }
      return .done(process: child.id)
    }
    return .refused(fault.split(whereSeparator: \.isNewline).joined(separator: "\n"))
  }

  private func startUpgradeChild() async throws(UpgradeChild.StartFault) -> UpgradeChild {
    var sockets: [(name: String, descriptor: Int32)] = []
    let listeners: [(InheritedSockets.Listener, Engine?)] = [(.gate, engine), (.admin, admin), (.metrics, metrics)]
    for (listener, engine) in listeners {
      for copy in await engine?.socketCopies() ?? [] { sockets.append((listener.rawValue, copy)) }
    }
    defer { for socket in sockets { close(socket.descriptor) } }
    return try UpgradeChild.start(program, passing: sockets, environment: ProcessInfo.processInfo.environment)
  }
}
