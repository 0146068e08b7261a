internal import ConfigurationEngine
internal import Settings

/// Checks the keys for the exchange of receipts, and says what follows from the metric on each platform. Sends nothing to
/// Apple.
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
    for app in settings.appAttest.androidApps {
      guard let risk = app.risk else { continue }
      report.pass(key(of: app), "\(app.package): \(Self.summary(of: risk))")
    }
    return report.results
  }

  /// The setting of the app that turns the policy on. Effective values have the app's place among all apps.
  private func key(of app: GateSettings.AndroidApp) -> String {
    let place = settings.effective.first { $0.key.hasSuffix("].package") && $0.text == app.package }?.key.dropLast(8)
    guard let place else { return "app_attest.apps" }
    return place + (app.risk?.threshold == nil ? ".risk.max_patch_age" : ".risk.threshold")
  }

  private func key(of risk: GateSettings.App.Risk) -> String {
    settings.effective.first { $0.key.hasSuffix(".risk.key_file") && $0.text == risk.keyFile }?.key
      ?? "app_attest.apps"
  }

  private static func summary(of risk: GateSettings.AndroidApp.Risk) -> String {
    var parts: [String] = []
    if let threshold = risk.threshold {
      parts.append(
        risk.action == .observe
          ? "keys of one device are only counted"
          : "more than \(threshold) keys of one device: " + (risk.action == .revoke ? "revoked" : "refused"))
    }
    if let age = risk.longestPatchAge {
      parts.append("patches older than \(age.components.seconds / 86_400) days: refused")
    }
    return parts.joined(separator: "; ")
  }

  private static func summary(of risk: GateSettings.App.Risk) -> String {
    let unknown = risk.whenUnknown == .refuse ? "; keys without a metric are refused" : ""
    guard let threshold = risk.threshold, risk.action != .observe else { return "metrics are only observed" + unknown }
    return "metrics above \(threshold): " + (risk.action == .revoke ? "revoked" : "refused") + unknown
  }
}
