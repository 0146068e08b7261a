internal import ConfigurationEngine

extension SettingsBuilder {
  /// The risk settings of an iOS app; `nil` without a key file.
  mutating func risk(_ index: Int) -> GateSettings.App.Risk? {
    let keyFile = value(Keys.riskKey, index)
    guard let keyFile else {
      if !entries.isFaulty(path(Keys.riskKey, index)) { refuseRiskWithoutKey(index) }
      return nil
    }
    checkSecretKeys(
      .developerKey, Keys.riskKey, index,
      advice: "name the file AuthKey_….p8 that the developer account offers once for download")
    let keyID = required(
      Keys.riskKeyID, index, hint: "name the ID of the key in the developer account; the file's name has it")
    let threshold = value(Keys.riskThreshold, index)
    let (action, unknown) = (value(Keys.riskAction, index), value(Keys.riskUnknown, index))
    if let action, action != .observe, threshold == nil, !entries.isFaulty(path(Keys.riskThreshold, index)) {
      refuse(
        path(Keys.riskThreshold, index), "missing: action \(action.rawValue) needs it",
        hint: "observe first, and choose a number that few of your users exceed: sallyport keys list --risk 3+")
    }
    let endpoint = endpoint(index)
    guard let keyID, let action, let unknown else { return nil }
    return GateSettings.App.Risk(
      keyFile: keyFile, keyID: keyID, threshold: threshold, action: action, whenUnknown: unknown, endpoint: endpoint)
  }

  /// The risk settings of an Android app; `nil` if nothing is judged.
  mutating func androidRisk(_ index: Int) -> GateSettings.AndroidApp.Risk? {
    let (threshold, age) = (value(Keys.riskThreshold, index), value(Keys.longestPatchAge, index))
    guard let action = value(Keys.riskAction, index) else { return nil }
    let greatest = GateSettings.AndroidApp.Risk.greatestThreshold
    if let threshold, threshold > greatest {
      refuse(
        path(Keys.riskThreshold, index),
        "\(threshold) is above \(greatest): with platform: android, keys are counted up to "
          + "\(greatest + 1)", suggestion: "\(greatest)")
    }
    if age != nil, action == .observe {
      refuse(
        path(Keys.longestPatchAge, index), "without effect with action: observe",
        hint: "set risk.action: refuse, or remove the key")
    }
    guard threshold != nil || age != nil else {
      if action != .observe,
        ![Keys.riskThreshold.definition, Keys.longestPatchAge.definition].contains(where: {
          entries.isFaulty(SettingPath(pattern: $0.pattern, indices: [index]))
        })
      {
        refuse(
          path(Keys.riskThreshold, index), "missing: action \(action.rawValue) needs it, or max_patch_age",
          hint: "observe first, and choose a number that few of your users exceed: sallyport keys list --risk 3+")
      }
      return nil
    }
    return GateSettings.AndroidApp.Risk(threshold: threshold, action: action, longestPatchAge: age)
  }

  /// A default value may be given: printed settings have it.
  private mutating func refuseRiskWithoutKey(_ index: Int) {
    let keys = [
      Keys.riskKeyID.definition, Keys.riskThreshold.definition, Keys.riskAction.definition,
      Keys.riskUnknown.definition, Keys.riskEndpoint.definition,
    ]
    for key in keys {
      let path = SettingPath(pattern: key.pattern, indices: [index])
      guard let given = entries.values[path]?.text, given != key.standard else { continue }
      refuse(
        path, "without effect without risk.key_file",
        hint: "set key_file to a private key of the developer account, or remove the key")
    }
  }

  /// Receipts of real devices go to Apple alone.
  private mutating func endpoint(_ index: Int) -> String? {
    let isSimulated = value(Keys.attestationRoot) != nil
    guard let endpoint = value(Keys.riskEndpoint, index) else {
      if isSimulated, !entries.isFaulty(path(Keys.riskEndpoint, index)) {
        warn(
          path(Keys.riskEndpoint, index),
          "not set: Apple knows no simulated devices, so that no metric of theirs becomes known")
      }
      return nil
    }
    if !isSimulated, !GateSettings.App.Risk.appleEndpoints.contains(endpoint) {
      refuse(
        path(Keys.riskEndpoint, index), "another service than Apple's is not allowed with Apple's roots",
        hint: "remove the key; it is for simulated devices (app_attest.trust.attestation_root_file)")
    }
    return endpoint
  }
}
