internal import ConfigurationEngine

extension SettingsBuilder {
  mutating func apps() -> [GateSettings.App] {
    var apps: [GateSettings.App] = []
    var names: Set<String> = []
    for index in elementIndices(of: .root["app_attest"]["apps"]) where value(Keys.platform, index) == .ios {
      refuseKeys(foreignTo: .ios, index)
      guard let app = app(index) else { continue }
      let name = "\(app.teamID).\(app.bundleID)"
      if !names.insert(name).inserted { refuse(path(Keys.bundleID, index), "the app \(name) is configured twice") }
      apps.append(app)
    }
    return apps
  }

  private mutating func app(_ index: Int) -> GateSettings.App? {
    let team = required(Keys.teamID, index)
    let bundle = required(Keys.bundleID, index)
    let environments = elements(Keys.environments, index)
    let list = path(Keys.environments, index, 0).parent
    if environments.isEmpty, entries.indices(of: list).isEmpty, !entries.isFaulty(list) {
      refuse(list, "empty list of environments", suggestion: "[production]")
    }
    let categories = elements(Keys.allowedCategories, index)
    let categoryList = path(Keys.allowedCategories, index, 0).parent
    if categories.isEmpty, entries.containers[categoryList] != nil, entries.indices(of: categoryList).isEmpty,
      !entries.isFaulty(categoryList)
    {
      refuse(categoryList, "an empty list admits no device; remove the key to admit every category")
    }
    let risk = risk(index)
    guard let team, let bundle, let missing = value(Keys.missingCategory, index) else { return nil }
    return GateSettings.App(
      teamID: team, bundleID: bundle, environments: Set(environments),
      allowedCategories: categories.isEmpty ? nil : Set(categories), missingCategory: missing, risk: risk)
  }

  /// The name of an app whose users' devices are admitted; `nil` if there are only apps for tests.
  func productionApp(among apps: [GateSettings.App], _ androidApps: [GateSettings.AndroidApp]) -> String? {
    apps.first { $0.environments.contains(.production) }.map { "\($0.teamID).\($0.bundleID)" }
      ?? (value(Keys.androidRoot) == nil ? androidApps.first?.package : nil)
  }

  mutating func appAttest(
    apps: [GateSettings.App], androidApps: [GateSettings.AndroidApp]
  ) -> GateSettings.AppAttest? {
    let trust = trust(apps: apps, androidApps: androidApps)
    let statusList = statusList(androidApps: androidApps, isSimulated: trust.androidRootFile != nil)
    checkSecretKeys(.anything, Keys.challengeKeys)
    guard let enforcement = value(Keys.enforcement), let challengeTTL = value(Keys.challengeTTL),
      let rotation = value(Keys.challengeKeyRotation), let counterWindow = value(Keys.counterWindow)
    else { return nil }
    switch enforcement {
    case .off: warn(path(Keys.enforcement), "enforcement is OFF: all clients are admitted without verification")
    case .enforce, .monitor:
      if enforcement == .monitor {
        warn(path(Keys.enforcement), "MONITOR mode: clients that fail verification are admitted anonymously")
      }
      let list = SettingPath.root["app_attest"]["apps"]
      if apps.isEmpty, androidApps.isEmpty, entries.indices(of: list).isEmpty, !entries.isFaulty(list) {
        warn(list, "no app configured: registration answers 503")
      }
    }
    return GateSettings.AppAttest(
      enforcement: enforcement, apps: apps, androidApps: androidApps, statusList: statusList, trust: trust,
      challengeTTL: challengeTTL, challengeKeysFile: value(Keys.challengeKeys), challengeKeyRotation: rotation,
      counterWindow: counterWindow)
  }

  private mutating func trust(
    apps: [GateSettings.App], androidApps: [GateSettings.AndroidApp]
  ) -> GateSettings.Trust {
    let trust = GateSettings.Trust(
      attestationRootFile: value(Keys.attestationRoot), receiptRootFile: value(Keys.receiptRoot),
      androidRootFile: value(Keys.androidRoot))
    let real = productionApp(among: apps, androidApps)
    if trust.androidRootFile != nil {
      warn(
        path(Keys.androidRoot),
        androidApps.isEmpty
          ? "without effect: no app has platform: android" : "simulated Android devices are admitted, and no real ones")
    }
    let files = [
      (Keys.attestationRoot, trust.attestationRootFile), (Keys.receiptRoot, trust.receiptRootFile),
      (Keys.androidRoot, trust.androidRootFile),
    ]
    for (key, file) in files {
      guard file != nil else { continue }
      check(.certificates, key)
      if let real {
        refuse(
          path(key),
          "a root for simulated devices is not allowed with \(real) in environment production",
          hint: "use simulated devices only for apps with environments: [development], and for Android apps with "
            + "android_root_file")
      }
    }
    if (trust.attestationRootFile == nil) != (trust.receiptRootFile == nil) {
      let given = trust.attestationRootFile == nil ? Keys.receiptRoot : Keys.attestationRoot
      let reason = "only one of attestation_root_file and receipt_root_file is set: no device can match both roots"
      if apps.isEmpty {
        warn(path(given), reason)
      } else if real == nil {
        refuse(path(given), reason, hint: "set both to roots of one authority, or remove both for Apple's")
      }
    }
    return trust
  }
}
