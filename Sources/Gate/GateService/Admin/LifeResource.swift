internal import Transport

/// The outcome of an attempt to reload the configuration.
public enum ReloadOutcome: Sendable, Hashable {
  /// It is served; the sections named need a restart for what changed in them, and so do files for what they hold.
  case done(needingRestart: [String])
  /// The old one stays, for this reason: a line for each fault, and lines `hint: `.
  case refused(String)
}

/// What came of an attempt to have another process take over.
public enum UpgradeOutcome: Sendable, Hashable {
  /// That process serves; this one goes on until its sessions have ended.
  case done(process: Int32)
  /// This one serves as before, for this reason.
  case refused(String)
}

/// `/v1/reload`, `/v1/upgrade` and `/v1/drain`: the life of the process.
public struct LifeResource: AdminResource {
  private let reload: @Sendable () async -> ReloadOutcome
  private let upgrade: @Sendable () async -> UpgradeOutcome
  private let drain: @Sendable () -> Void

  /// - Parameters:
  ///   - reload: returns once the new configuration is served, or the old one stays.
  ///   - upgrade: returns once another process serves, or this one has given up.
  ///   - drain: asks for the end and returns at once.
  public init(
    reload: @escaping @Sendable () async -> ReloadOutcome, upgrade: @escaping @Sendable () async -> UpgradeOutcome,
    drain: @escaping @Sendable () -> Void
  ) {
    self.reload = reload
    self.upgrade = upgrade
    self.drain = drain
  }

  private struct Reloaded: Encodable {
    let reloaded: Bool
    let needsRestart: [String]
  }

  private struct Upgraded: Encodable {
    let upgraded: Bool
    let process: Int32
  }

  public var operations: [AdminOperation] {
    [
      AdminOperation(
        "POST", "/v1/reload", "Reloads the configuration; open sessions do not notice.",
        answers: AdminAnswers(200, schema: .reload, refusals: [409])
      ) {
        _ throws(AdminFault) in
        switch await reload() {
        case .done(let sections): return .json(Reloaded(reloaded: true, needsRestart: sections))
        case .refused(let reason): throw .configurationRefused(reason: reason)
        }
      },
      AdminOperation(
        "POST", "/v1/upgrade", "Starts the program again and hands over to it; open sessions go on until they end.",
        answers: AdminAnswers(200, schema: .upgrade, refusals: [409])
      ) {
        _ throws(AdminFault) in
        switch await upgrade() {
        case .done(let process): return .json(Upgraded(upgraded: true, process: process))
        case .refused(let reason): throw .upgradeRefused(reason: reason)
        }
      },
      AdminOperation(
        "POST", "/v1/drain", "Ends the gate: every session is closed with 1001.",
        answers: AdminAnswers(202, schema: .drain)
      ) {
        _ throws(AdminFault) in
        drain()
        return .json(["draining": true], status: 202)
      },
    ]
  }
}
