public import AndroidKeyAttestation
internal import ByteCoding

/// What an Android attestation said about a key, as one line of text for stores and exports:
/// `level=tee boot=verified boot_key=HEX patch=2026-05 provisioning=remote signers=HEX,HEX serials=HEX,HEX`. A value
/// that the device did not report is left out. Names that a reader does not know are refused.
extension AttestedAndroidKey {
  public var evidenceText: String {
    var fields = [
      "level=\(securityLevel.word)", "boot=\(bootState.word)", "boot_key=\(Hex.encode(bootKey))",
    ]
    if let patchLevel { fields.append("patch=\(patchLevel)") }
    fields.append("provisioning=\(provisioning.rawValue)")
    fields.append("signers=" + signers.map(Hex.encode).joined(separator: ","))
    fields.append("serials=" + serialNumbers.map(Hex.encode).joined(separator: ","))
    return fields.joined(separator: " ")
  }

  /// Reads what `evidenceText` wrote; `nil` for anything else.
  public init?(publicKey: [UInt8], package: String, evidenceText: String) {
    var values: [Substring: Substring] = [:]
    for field in evidenceText.split(separator: " ", omittingEmptySubsequences: false) {
      guard let sign = field.firstIndex(of: "=") else { return nil }
      guard values.updateValue(field[field.index(after: sign)...], forKey: field[..<sign]) == nil else { return nil }
    }
    let patchText = values.removeValue(forKey: "patch")
    let patchLevel = patchText.flatMap { PatchLevel(String($0)) }
    guard values.count == 6, (patchText == nil) == (patchLevel == nil), AndroidAppPolicy.isPackageName(package),
      let level = values["level"].flatMap({ text in KeyDescription.SecurityLevel.allCases.first { $0.word == text } }),
      let boot = values["boot"].flatMap({ text in
        RootOfTrust.VerifiedBootState.allCases.first { $0.word == text }
      }),
      // No attestation proves less.
      level != .software, [.verified, .selfSigned].contains(boot),
      let bootKey = values["boot_key"].flatMap({ Hex.decode(String($0)) }),
      let provisioning = values["provisioning"].flatMap({ KeyProvisioning(rawValue: String($0)) }),
      let signers = values["signers"].flatMap(Self.list), let serials = values["serials"].flatMap(Self.list)
    else { return nil }
    self.init(
      publicKey: publicKey, package: package, signers: signers, securityLevel: level, bootState: boot,
      bootKey: bootKey, patchLevel: patchLevel, provisioning: provisioning, serialNumbers: serials)
  }

  private static func list(_ text: Substring) -> [[UInt8]]? {
    guard !text.isEmpty else { return [] }
    let items = text.split(separator: ",", omittingEmptySubsequences: false).map { Hex.decode(String($0)) }
    return items.contains(nil) ? nil : items.compactMap(\.self)
  }
}

extension KeyDescription.SecurityLevel {
  /// The word for the level in stores, identities and reports.
  public var word: String {
    switch self {
    case .software: "software"
    case .trustedEnvironment: "tee"
    case .strongBox: "strongbox"
    }
  }
}

extension RootOfTrust.VerifiedBootState {
  /// The word for the state in stores, identities and reports.
  public var word: String {
    switch self {
    case .verified: "verified"
    case .selfSigned: "self_signed"
    case .unverified: "unverified"
    case .failed: "failed"
    }
  }
}

extension DeviceKey {
  /// What stores and exports keep in addition to the common values for a key of Android; `nil` for one of iOS.
  public var androidEvidence: String? {
    if case .android(let key) = attestation { key.evidenceText } else { nil }
  }
}
