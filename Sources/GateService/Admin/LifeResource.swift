internal import Transport

/// What came of an attempt to read the configuration anew.
public enum ReloadOutcome: Sendable, Hashable {
  /// It is served; the sections named need a restart for what changed in them.
  case done(needingRestart: [String])
  /// The old one stays, for this reason.
  case refused(String)
}

/// `/v1/reload` and `/v1/drain`: the life of the process.
public struct LifeResource: AdminResource {
  private let reload: @Sendable () async -> ReloadOutcome
  private let drain: @Sendable () -> Void

  /// - Parameters:
  ///   - reload: returns once the new configuration is served, or the old one stays.
  ///   - drain: asks for the end and returns at once.
  public init(reload: @escaping @Sendable () async -> ReloadOutcome, drain: @escaping @Sendable () -> Void) {
    self.reload = reload
    self.drain = drain
  }

  private struct Reloaded: Encodable {
    let reloaded: Bool
    let needsRestart: [String]
  }

  public var operations: [AdminOperation] {
    [
      AdminOperation(
        "POST", "/v1/reload", "Reads the configuration anew; open sessions do not notice.",
        answers: AdminAnswers(200, refusals: [409])
      ) {
        _ throws(AdminFault) in
        switch await reload() {
        case .done(let sections): return .json(Reloaded(reloaded: true, needsRestart: sections))
        case .refused(let reason): throw .configurationRefused(reason: reason)
        }
      },
      AdminOperation(
        "POST", "/v1/drain", "Ends the gate: every session is closed with 1001.", answers: AdminAnswers(202)
      ) {
        _ throws(AdminFault) in
        drain()
        return .json(["draining": true], status: 202)
      },
    ]
  }
}
