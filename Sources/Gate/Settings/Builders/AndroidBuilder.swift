internal import ConfigurationEngine

extension SettingsBuilder {
  mutating func androidApps() -> [GateSettings.AndroidApp] {
    var apps: [GateSettings.AndroidApp] = []
    for index in entries.indices(of: .root["app_attest"]["apps"]) where value(Keys.platform, index) == .android {
      refuseKeys(foreignTo: .android, index)
      guard let app = androidApp(index) else { continue }
      if apps.contains(where: { $0.package == app.package }) {
        refuse(path(Keys.package, index), "the app \(app.package) is configured twice")
      }
      apps.append(app)
    }
    return apps
  }

  private mutating func androidApp(_ index: Int) -> GateSettings.AndroidApp? {
    let package = required(Keys.package, index)
    let signers = elements(Keys.signers, index)
    let list = path(Keys.signers, index, 0).parent
    if signers.isEmpty, entries.indices(of: list).isEmpty, !entries.isFaulty(list) {
      refuse(
        list, entries.containers[list] == nil ? "missing" : "an empty list admits no app",
        hint: "name the certificate's SHA-256, as apksigner verify --print-certs or the Play Console shows it")
    }
    let bootKeys = bootKeys(index)
    let risk = androidRisk(index)
    guard let package, !signers.isEmpty, let level = value(Keys.securityLevel, index),
      let requiresRKP = value(Keys.requiresRKP, index)
    else { return nil }
    return GateSettings.AndroidApp(
      package: package, signers: signers, securityLevel: level, bootKeysFile: bootKeys,
      leastPatchLevel: value(Keys.leastPatchLevel, index), requiresRKP: requiresRKP, risk: risk)
  }

  private mutating func bootKeys(_ index: Int) -> String? {
    let file = value(Keys.bootKeys, index)
    check(.anything, Keys.bootKeys, index)
    switch value(Keys.verifiedBoot, index) {
    case .allowBootKeys:
      if file == nil, !entries.isFaulty(path(Keys.bootKeys, index)) {
        refuse(
          path(Keys.bootKeys, index), "missing: verified_boot: allow_boot_keys needs the keys",
          hint: "name a file with the SHA-256 of one boot key per line, or the JSON of GrapheneOS")
      }
      return file
    case .verified, nil:
      if file != nil {
        refuse(
          path(Keys.bootKeys, index), "without effect with verified_boot: verified",
          hint: "set verified_boot: allow_boot_keys")
      }
      return nil
    }
  }

  mutating func statusList(
    androidApps: [GateSettings.AndroidApp], isSimulated: Bool
  ) -> GateSettings.StatusList? {
    let caFile = value(Keys.statusListCA)
    check(.certificates, Keys.statusListCA)
    guard let refresh = value(Keys.statusListRefresh), let maximumAge = value(Keys.statusListMaximumAge) else {
      return nil
    }
    guard let text = value(Keys.statusList) else {
      if caFile != nil {
        refuse(
          path(Keys.statusListCA), "without effect without app_attest.android.status_list",
          hint: "set status_list, or remove the key")
      }
      if !androidApps.isEmpty, !isSimulated, !entries.isFaulty(path(Keys.statusList)) {
        warn(
          path(Keys.statusList),
          "not set: Android devices with revoked certificates are registered; Google publishes the list at "
            + "https://android.googleapis.com/attestation/status")
      }
      return nil
    }
    if maximumAge < refresh {
      refuse(
        path(Keys.statusListMaximumAge), "shorter than app_attest.android.refresh",
        hint: "the list would be too old before it is read again: set a longer max_age")
    }
    if androidApps.isEmpty { warn(path(Keys.statusList), "without effect: no app has platform: android") }
    if text.hasPrefix("https://") {
      if refresh < .seconds(60) {
        refuse(
          path(Keys.statusListRefresh), "less than 1m, for a list that is downloaded",
          hint: "set 1m or more; only a file can be read more often")
      }
      return GateSettings.StatusList(place: .url(text, caFile: caFile), refresh: refresh, maximumAge: maximumAge)
    }
    check(.statusList, Keys.statusList)
    if caFile != nil {
      refuse(
        path(Keys.statusListCA), "without effect with a file as app_attest.android.status_list",
        hint: "remove the key")
    }
    return GateSettings.StatusList(place: .file(path: text), refresh: refresh, maximumAge: maximumAge)
  }

  // MARK: Keys of the other platform

  /// Refuses keys that an element of `app_attest.apps` may not have with its platform.
  mutating func refuseKeys(foreignTo platform: GateSettings.Platform, _ index: Int) {
    for key in table.keys {
      guard let own = key.condition, own.value != platform.rawValue else { continue }
      let path = SettingPath(pattern: key.pattern, indices: [index])
      let place = path.steps.last == "[]" ? path.parent : path
      guard entries.values[place] != nil || entries.containers[place] != nil else { continue }
      refuse(
        place, "only with platform: \(own.value)", hint: "set platform: \(own.value), or remove the key")
    }
  }
}
