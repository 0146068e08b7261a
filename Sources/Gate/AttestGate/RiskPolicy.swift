internal import AndroidKeyAttestation
internal import ByteCoding

/// The conditions for the risk metric of an app's keys: Apple's on iOS, that of `AttestationKeyRisk` on Android.
public struct RiskPolicy: Sendable, Hashable {
  /// What follows from a metric above the threshold.
  public enum Action: String, Sendable, Hashable, CaseIterable {
    /// The metric is stored and shown, and nothing else.
    case observe
    /// The key is not admitted while its metric is above the threshold.
    case refuse
    /// As `refuse`. The exchange, or on Android the registration, that finds the metric also revokes the key, which
    /// closes its sessions.
    case revoke
  }

  /// The decision for a key without a current metric.
  public enum Unknown: String, Sendable, Hashable, CaseIterable { case accept, refuse }

  /// The greatest metric that is accepted; `nil` accepts every metric.
  public let threshold: Int?
  public let action: Action
  public let whenUnknown: Unknown
  /// The greatest accepted age of the security patches of an Android device, from the first day of their month; `nil`
  /// accepts every age.
  public let longestPatchAge: Duration?

  public init(
    threshold: Int?, action: Action = .observe, whenUnknown: Unknown = .accept, longestPatchAge: Duration? = nil
  ) {
    self.threshold = threshold
    self.action = action
    self.whenUnknown = whenUnknown
    self.longestPatchAge = longestPatchAge
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

  /// Decides about the admission of a key of Android at `now`.
  ///
  /// - Throws: `.riskTooHigh`, `.patchLevelOutdated`, or `.deviceRefused` for a device that reports no patch level.
  func check(
    _ risk: StoredRisk?, of key: AttestedAndroidKey, _ app: AppName, at now: Timestamp
  ) throws(Denial) {
    try check(risk, of: app, registeredAt: nil, at: now)
    guard let oldest = oldestPatchLevel(at: now) else { return }
    guard let level = key.patchLevel else { throw .deviceRefused([.patchLevelUnknown], app) }
    guard level >= oldest else { throw .patchLevelOutdated(level, oldest: oldest, app) }
  }

  /// The oldest accepted month of security patches at `now`; `nil` if the policy refuses none.
  func oldestPatchLevel(at now: Timestamp) -> PatchLevel? {
    guard action != .observe, let longestPatchAge else { return nil }
    return PatchLevel(startingAfter: now.advanced(by: .zero - longestPatchAge))
  }

  /// The time at which a key with `metric` is to be revoked, for an exchange at `now`; `nil` if it is not.
  func revocation(for metric: Int, at now: Timestamp) -> Timestamp? {
    action == .revoke && isExceeded(by: metric) ? now : nil
  }
}

extension PatchLevel {
  /// The first month whose first day is at or after `instant`; `nil` outside the years of patch levels.
  fileprivate init?(startingAfter instant: Timestamp) {
    let (year, month, _) = CivilDate.date(ofDay: instant.seconds / 86_400)
    let isAtStart = instant.seconds <= CivilDate.day(year: year, month: month, day: 1) * 86_400
    let months = (year * 12 + month - 1) + (isAtStart ? 0 : 1)
    self.init(year: Int(months / 12), month: Int(months % 12) + 1)
  }
}
