public import Transport

/// The result of an attempt to reload the configuration.
public enum ReloadOutcome: Sendable, Hashable {
  /// The new configuration is active. Changes in the named sections, and in the files that they name, need a restart.
  case done(needingRestart: [String])
  /// The old configuration stays active. The reason has a line for each fault and lines that begin with `hint: `.
  case refused(String)
}

/// The result of a graceful upgrade.
public enum UpgradeOutcome: Sendable, Hashable {
  /// The new process serves. This process continues until its sessions are closed.
  case done(process: Int32)
  /// This process continues to serve as before, for this reason.
  case refused(String)
}

/// The admin server's answer to a reload.
public struct ReloadReply: Codable, Sendable, Hashable {
  public let reloaded: Bool
  /// The sections whose changes take effect only after a restart.
  public let needsRestart: [String]
}

/// The admin server's answer to a graceful upgrade.
public struct UpgradeReply: Codable, Sendable, Hashable {
  public let upgraded: Bool
  /// The id of the new process.
  public let process: Int32
}

/// The admin server's answer to a shutdown that began.
public struct DrainReply: Codable, Sendable, Hashable {
  public let draining: Bool
}

/// `/v1/reload`, `/v1/upgrade` and `/v1/drain`: the operations on the gate's process.
public struct LifeResource: AdminResource {
  private let reload: @Sendable (PeerProcess?) async -> ReloadOutcome
  private let upgrade: @Sendable (PeerProcess?) async -> UpgradeOutcome
  private let drain: @Sendable (PeerProcess?) -> Void

  /// Each closure gets the process that asks, if the kernel names it.
  ///
  /// - Parameters:
  ///   - reload: Returns when the new configuration is active or was refused.
  ///   - upgrade: Returns when the new process serves or the upgrade was abandoned.
  ///   - drain: Starts the shutdown and returns at once.
  public init(
    reload: @escaping @Sendable (PeerProcess?) async -> ReloadOutcome,
    upgrade: @escaping @Sendable (PeerProcess?) async -> UpgradeOutcome,
    drain: @escaping @Sendable (PeerProcess?) -> Void
  ) {
    self.reload = reload
    self.upgrade = upgrade
    self.drain = drain
  }

  public var operations: [AdminOperation] {
    [
      AdminOperation(
        "POST", "/v1/reload", "Reloads the configuration; closes the sessions of client certificates that it refuses.",
        answers: AdminAnswers(200, schema: .reload, refusals: [409])
      ) {
        asked throws(AdminError) in
        switch await reload(asked.process) {
        case .done(let sections): return .json(ReloadReply(reloaded: true, needsRestart: sections))
        case .refused(let reason): throw .configurationRefused(reason: reason)
        }
      },
      AdminOperation(
        "POST", "/v1/upgrade", "Starts a new process and hands over to it; the old process keeps open sessions.",
        answers: AdminAnswers(200, schema: .upgrade, refusals: [409])
      ) {
        asked throws(AdminError) in
        switch await upgrade(asked.process) {
        case .done(let process): return .json(UpgradeReply(upgraded: true, process: process))
        case .refused(let reason): throw .upgradeRefused(reason: reason)
        }
      },
      AdminOperation(
        "POST", "/v1/drain", "Shuts down the gate: every session is closed with 1001.",
        answers: AdminAnswers(202, schema: .drain)
      ) {
        asked throws(AdminError) in
        drain(asked.process)
        return .json(DrainReply(draining: true), status: 202)
      },
    ]
  }
}
