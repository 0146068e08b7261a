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

  /// The age at which a key without a metric will not get one any more: Apple keeps what it counts for about 30 days
  /// after the last attestation on the device.
  static let longestUnknown = Duration.seconds(30 * 86_400)

  /// Decides about the admission of a key of `app` at `now`.
  ///
  /// - Throws: `.riskTooHigh`, `.riskUnknown` or `.riskOutdated`.
  func check(
    _ risk: StoredRisk?, of app: AppName, registeredAt: Timestamp?, at now: Timestamp
  ) throws(Denial) {
    if let metric = risk?.current?.metric {
      guard action != .observe, isExceeded(by: metric) else { return }
      throw .riskTooHigh(metric, threshold: threshold ?? 0, app)
    }
    guard whenUnknown == .refuse else { return }
    let isOld = registeredAt.map { now.since($0) > Self.longestUnknown } ?? false
    throw risk != nil || isOld ? Denial.riskOutdated(risk?.newest, app) : Denial.riskUnknown(app)
  }

  /// The time at which a key with `metric` is to be revoked, for an exchange at `now`; `nil` if it is not.
  func revocation(for metric: Int, at now: Timestamp) -> Timestamp? {
    action == .revoke && isExceeded(by: metric) ? now : nil
  }
}
