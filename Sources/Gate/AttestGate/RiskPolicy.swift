internal import ByteCoding

/// The conditions for the risk metric of an app's keys.
public struct RiskPolicy: Sendable, Hashable {
  /// What follows from a metric above the threshold.
  public enum Action: String, Sendable, Hashable, CaseIterable {
    /// The metric is stored and shown, and nothing else.
    case observe
    /// The key is not admitted while its metric is above the threshold.
    case refuse
    /// As `refuse`. An exchange that finds the metric also revokes the key, which closes its sessions.
    case revoke
  }

  /// The decision for a key without a current metric.
  public enum Unknown: String, Sendable, Hashable, CaseIterable { case accept, refuse }

  /// The greatest metric that is accepted; `nil` accepts every metric.
  public let threshold: Int?
  public let action: Action
  public let whenUnknown: Unknown

  public init(threshold: Int?, action: Action = .observe, whenUnknown: Unknown = .accept) {
    self.threshold = threshold
    self.action = action
    self.whenUnknown = whenUnknown
  }

  /// Whether `metric` is above the threshold.
  public func isExceeded(by metric: Int) -> Bool { threshold.map { metric > $0 } ?? false }

  /// Decides about the admission of a key of `app`.
  ///
  /// - Throws: `.riskTooHigh`, `.riskUnknown` or `.riskOutdated`.
  func check(_ risk: StoredRisk?, of app: AppName) throws(Denial) {
    if let metric = risk?.current?.metric {
      guard action != .observe, isExceeded(by: metric) else { return }
      throw .riskTooHigh(metric, threshold: threshold ?? 0, app)
    }
    guard whenUnknown == .refuse else { return }
    throw if let risk { Denial.riskOutdated(risk.newest, app) } else { Denial.riskUnknown(app) }
  }

  /// The time at which a key with `metric` is to be revoked, for an exchange at `now`; `nil` if it is not.
  func revocation(for metric: Int, at now: Timestamp) -> Timestamp? {
    action == .revoke && isExceeded(by: metric) ? now : nil
  }
}
