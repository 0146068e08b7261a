internal import AttestGate
internal import GateService
internal import Logging
internal import Observability
internal import Settings

extension GateComposition {
  /// The risk policies of Android apps, by package.
  static func androidRisks(_ settings: GateSettings.AppAttest) -> [String: RiskPolicy] {
    Dictionary(
      settings.androidApps.compactMap { app in app.risk.map { (app.package, RiskPolicy($0)) } },
      uniquingKeysWith: { first, _ in first })
  }

  /// Revokes keys because of a registration; `nil` if no Android app wants it.
  var attestationKeyEnforcement: AttestationKeyEnforcement? {
    let policies = Self.androidRisks(settings.appAttest).filter { $0.value.action == .revoke }
    guard !policies.isEmpty else { return nil }
    return AttestationKeyEnforcement(memory.store, policies: policies, report: Self.revocationReport(memory))
  }

  /// Reports a revocation because of a metric, in the log and to webhooks.
  static func revocationReport(_ memory: SharedState) -> @Sendable (RiskEnforcement.Revocation) -> Void {
    { [memory] revocation in
      memory.announce(.revoked(key: revocation.key.text, by: .risk))
      memory.receipts.logger.notice(
        "key revoked by risk metric",
        metadata: [
          "key": "\(revocation.key.short)", "app": "\(revocation.app.text)", "metric": .number(revocation.metric),
          "threshold": .number(revocation.threshold),
        ])
    }
  }
}

extension RiskPolicy {
  init(_ risk: GateSettings.App.Risk) {
    self.init(
      threshold: risk.threshold, action: Action(risk.action),
      whenUnknown: risk.whenUnknown == .refuse ? .refuse : .accept)
  }

  init(_ risk: GateSettings.AndroidApp.Risk) {
    self.init(threshold: risk.threshold, action: Action(risk.action), longestPatchAge: risk.longestPatchAge)
  }
}

extension RiskPolicy.Action {
  fileprivate init(_ action: GateSettings.App.Risk.Action) {
    switch action {
    case .observe: self = .observe
    case .refuse: self = .refuse
    case .revoke: self = .revoke
    }
  }
}

/// An app whose keys are counted by risk metric.
struct RiskApp: Sendable, Hashable {
  /// The text of the app's name.
  let name: String
  let action: GateSettings.App.Risk.Action
  let threshold: Int?

  /// The apps with a risk policy.
  static func all(in settings: GateSettings.AppAttest) -> [RiskApp] {
    settings.apps.compactMap { app in
      app.risk.map { RiskApp(name: "\(app.teamID).\(app.bundleID)", action: $0.action, threshold: $0.threshold) }
    }
      + settings.androidApps.compactMap { app in
        app.risk.map { RiskApp(name: app.package, action: $0.action, threshold: $0.threshold) }
      }
  }
}
