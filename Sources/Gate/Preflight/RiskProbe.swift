internal import ConfigurationEngine
internal import Settings

/// Checks the keys for the exchange of receipts, and says what follows from the metric. Sends nothing to Apple.
struct RiskProbe {
  let settings: GateSettings

  func run() -> [ProbeResult] {
    var report = ProbeReport(settings)
    for app in settings.appAttest.apps {
      guard let risk = app.risk else { continue }
      let key = key(of: risk)
      do throws(StartError) {
        _ = try RiskFiles.key(in: risk.keyFile, for: key)
        report.pass(key, "key \(risk.keyID) of team \(app.teamID) for \(app.bundleID): \(Self.summary(of: risk))")
      } catch {
        report.fail(error)
      }
    }
    return report.results
  }

  private func key(of risk: GateSettings.App.Risk) -> String {
    settings.effective.first { $0.key.hasSuffix(".risk.key_file") && $0.text == risk.keyFile }?.key
      ?? "app_attest.apps"
  }

  private static func summary(of risk: GateSettings.App.Risk) -> String {
    let unknown = risk.whenUnknown == .refuse ? "; keys without a metric are refused" : ""
    guard let threshold = risk.threshold, risk.action != .observe else { return "metrics are only observed" + unknown }
    return "metrics above \(threshold): " + (risk.action == .revoke ? "revoked" : "refused") + unknown
  }
}
