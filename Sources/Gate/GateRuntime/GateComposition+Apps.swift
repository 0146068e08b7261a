internal import AndroidKeyAttestation
internal import AppAttest
internal import AttestGate
internal import Commands
internal import Cryptography
internal import Settings

extension GateComposition {
  /// What keys of the Android apps have to prove.
  static func androidPolicies(
    _ settings: GateSettings.AppAttest
  ) throws(Failure) -> [AndroidAppPolicy] {
    var policies: [AndroidAppPolicy] = []
    for app in settings.androidApps {
      policies.append(
        AndroidAppPolicy(
          package: app.package, signers: Set(app.signers),
          minimumSecurityLevel: app.securityLevel == .strongbox ? .strongBox : .trustedEnvironment,
          allowedBootKeys: try bootKeys(of: app),
          minimumPatchLevel: app.leastPatchLevel.flatMap { PatchLevel(year: $0.year, month: $0.month) },
          requiresRemoteProvisioning: app.requiresRKP))
    }
    return policies
  }

  private static func bootKeys(of app: GateSettings.AndroidApp) throws(Failure) -> Set<[UInt8]> {
    guard let file = app.bootKeysFile else { return [] }
    do throws(StartError) {
      return try AndroidFiles.bootKeys(in: file, for: "app_attest.apps: \(app.package): boot_keys_file")
    } catch {
      throw Failure(error)
    }
  }

  /// The keys that chains of Android devices have to end at.
  static func androidRoots(in file: String?) throws(Failure) -> [IssuerKey] {
    guard let file else { return GoogleRoots.all }
    do throws(StartError) { return try AndroidFiles.roots(in: file) } catch { throw Failure(error) }
  }
}

extension AppPolicy {
  init?(_ app: GateSettings.App) {
    guard let appID = AppID(teamID: app.teamID, bundleID: app.bundleID) else { return nil }
    self.init(
      appID: appID,
      environments: Set(app.environments.compactMap { AttestEnvironment(rawValue: $0.rawValue) }),
      categories: CategoryPolicy(
        allowed: app.allowedCategories.map { Set($0.compactMap { ValidationCategory(name: $0.rawValue) }) },
        whenMissing: app.missingCategory == .refuse ? .refuse : .accept),
      risk: app.risk.map(RiskPolicy.init))
  }
}
