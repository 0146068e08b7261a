public import AndroidKeyAttestation
public import AppAttest
internal import ByteCoding

/// An iOS app that the gate admits, and the conditions for its devices.
public struct AppPolicy: Sendable, Hashable {
  public let appID: AppID
  public let environments: Set<AttestEnvironment>
  public let categories: CategoryPolicy
  /// `nil` if receipts of the app are not exchanged: no risk is judged.
  public let risk: RiskPolicy?

  public init(
    appID: AppID, environments: Set<AttestEnvironment>, categories: CategoryPolicy = .any, risk: RiskPolicy? = nil
  ) {
    self.appID = appID
    self.environments = environments
    self.categories = categories
    self.risk = risk
  }
}

/// The accepted installation sources of an app. Devices report the source from iOS 27 on.
public struct CategoryPolicy: Sendable, Hashable {
  /// The decision for a device that reports no source.
  public enum Missing: String, Sendable, Hashable, CaseIterable { case accept, refuse }

  /// The accepted sources; `nil` accepts every source.
  public let allowed: Set<ValidationCategory>?
  public let whenMissing: Missing

  public init(allowed: Set<ValidationCategory>?, whenMissing: Missing) {
    self.allowed = allowed
    self.whenMissing = whenMissing
  }

  public static let any = CategoryPolicy(allowed: nil, whenMissing: .accept)

  /// Whether a device that reported `category` is admitted. `nil` means that it reported none.
  public func admits(_ category: ValidationCategory?) -> Bool {
    guard let category else { return whenMissing == .accept }
    return allowed?.contains(category) ?? true
  }
}

/// The configured apps.
public struct AllowedApps: Sendable {
  private let policies: [AppID: AppPolicy]
  private let androidPolicies: [String: AndroidAppPolicy]
  /// By package. Keys of other packages are not judged.
  private let androidRisks: [String: RiskPolicy]
  /// The environment of keys of Android devices: `development` if the trusted roots are simulated ones.
  let androidEnvironment: AttestEnvironment
  /// Whether the risk of any app's keys is judged.
  let judgesRisk: Bool

  /// Returns `nil` if an app is listed twice.
  ///
  /// - Parameter androidRisks: The risk policies of Android apps, by package.
  public init?(
    _ policies: [AppPolicy], android: [AndroidAppPolicy] = [], androidRisks: [String: RiskPolicy] = [:],
    androidEnvironment: AttestEnvironment = .production
  ) {
    self.policies = Dictionary(policies.map { ($0.appID, $0) }) { first, _ in first }
    androidPolicies = Dictionary(android.map { ($0.package, $0) }) { first, _ in first }
    self.androidEnvironment = androidEnvironment
    self.androidRisks = androidRisks
    judgesRisk = policies.contains { $0.risk != nil } || !androidRisks.isEmpty
    guard self.policies.count == policies.count, androidPolicies.count == android.count else { return nil }
  }

  /// An empty list: no key can be registered.
  public static let none = AllowedApps()

  private init() {
    (policies, androidPolicies, androidRisks) = ([:], [:], [:])
    (androidEnvironment, judgesRisk) = (.production, false)
  }

  public var isEmpty: Bool { policies.isEmpty && androidPolicies.isEmpty }

  /// Whether an app of `platform` is configured.
  func serves(_ platform: Platform) -> Bool {
    switch platform {
    case .ios: !policies.isEmpty
    case .android: !androidPolicies.isEmpty
    }
  }

  /// The accepted environments of each app, for the attestation verifier.
  public var environments: [AppID: Set<AttestEnvironment>] { policies.mapValues(\.environments) }

  /// The policy of an app, or `nil` if the app is not configured.
  public subscript(appID: AppID) -> AppPolicy? { policies[appID] }

  /// The policies of Android apps for a registration at `now`, in the order of their packages. A device whose patches
  /// are older than the risk policy accepts is refused as one below `min_patch_level`: another key would not help it.
  func android(at now: Timestamp) -> [AndroidAppPolicy] {
    let ordered = androidPolicies.values.sorted { $0.package < $1.package }
    guard !androidRisks.isEmpty else { return ordered }
    return ordered.map { policy in
      guard let oldest = androidRisks[policy.package]?.oldestPatchLevel(at: now) else { return policy }
      var policy = policy
      policy.minimumPatchLevel = max(oldest, policy.minimumPatchLevel ?? oldest)
      return policy
    }
  }

  /// Checks the risk of a key before its admission. A registration does not call this: a new key of App Attest has no
  /// metric yet, and one of Android adds to those of its device.
  ///
  /// - Throws: `.riskTooHigh`, `.riskUnknown`, `.riskOutdated`, `.patchLevelOutdated` or `.deviceRefused`.
  func check(
    _ risk: StoredRisk?, of key: DeviceKey, registeredAt: Timestamp?, at now: Timestamp
  ) throws(Denial) {
    switch key.attestation {
    case .appAttest(let attested):
      try policies[attested.appID]?.risk?.check(risk, of: key.app, registeredAt: registeredAt, at: now)
    case .android(let attested):
      try androidRisks[attested.package]?.check(risk, of: attested, key.app, at: now)
    }
  }

  /// The metric that upstreams get of a key. Stores count the keys of every Android device; only apps with a risk policy
  /// show the number.
  func shownRisk(_ risk: StoredRisk?, of key: DeviceKey) -> KeyRisk? {
    guard let current = risk?.current else { return nil }
    guard case .android(let attested) = key.attestation else { return current }
    return androidRisks[attested.package] == nil ? nil : current
  }

  /// Checks a key against the current configuration. Registration, its repetition and admission all call this; the
  /// configuration may have changed between them.
  ///
  /// - Parameter category: The source from which the app was installed, or `nil` if the device reported none.
  /// - Throws: `.appNotServed`, `.environmentRefused`, `.categoryRefused` or `.deviceRefused`.
  func check(_ key: DeviceKey, category: ValidationCategory?) throws(Denial) {
    switch key.attestation {
    case .appAttest(let attested):
      guard let policy = policies[attested.appID] else { throw .appNotServed(key.app) }
      guard policy.environments.contains(key.environment) else { throw .environmentRefused(key.environment, key.app) }
      guard policy.categories.admits(category) else { throw .categoryRefused(category, key.app) }
    case .android(let attested):
      guard let policy = androidPolicies[attested.package] else { throw .appNotServed(key.app) }
      guard key.environment == androidEnvironment else { throw .environmentRefused(key.environment, key.app) }
      let broken = policy.brokenRules(by: attested)
      guard broken.isEmpty else { throw .deviceRefused(broken, key.app) }
    }
  }
}
