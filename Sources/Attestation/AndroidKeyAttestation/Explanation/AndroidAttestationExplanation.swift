public import ByteCoding
internal import Cryptography

extension AndroidAttestationVerifier {
  /// Explains how `verify` would judge these certificates, each one in DER, leaf first. Every rule is checked, as far as
  /// the certificates can be parsed.
  ///
  /// A rule that holds has the name of its step; a broken one is named by the code of each rejection.
  public func explain(
    _ encoded: [[UInt8]], challenge: [UInt8], statusList: AndroidStatusList?, at instant: Timestamp
  ) -> Explanation {
    explain(challenge: challenge, statusList: statusList, at: instant) { () throws(AndroidAttestationRejection) in
      encoded
    }
  }

  /// Explains a chain in a file: PEM, or a JSON array of base64.
  public func explain(
    content: [UInt8], challenge: [UInt8], statusList: AndroidStatusList?, at instant: Timestamp
  ) -> Explanation {
    explain(challenge: challenge, statusList: statusList, at: instant) { () throws(AndroidAttestationRejection) in
      try AndroidCertificateChain.encodings(in: content)
    }
  }

  private func explain(
    challenge: [UInt8], statusList: AndroidStatusList?, at instant: Timestamp,
    of encoded: () throws(AndroidAttestationRejection) -> [[UInt8]]
  ) -> Explanation {
    var explanation = Explanation()
    do throws(AndroidAttestationRejection) {
      let chain = try AndroidCertificateChain(encoded()).ending(at: roots)
      let claim = AndroidClaim(chain: chain, challenge: challenge, statusList: statusList, instant: instant)
      for step in AndroidAttestationStep.allCases { explanation.record(step, broken: check(step, of: claim)) }
      explanation.fields = claim.explainedFields
    } catch {
      for step in AndroidAttestationStep.allCases {
        explanation.record(step, broken: step == .format ? error.rules : nil)
      }
    }
    return explanation
  }
}

extension Explanation {
  fileprivate mutating func record(_ step: AndroidAttestationStep, broken: [AndroidRuleRejection]?) {
    guard let broken else { return skip(step.rawValue, rule: step.rule) }
    guard !broken.isEmpty else { return record(step.rawValue, rule: step.rule, rejection: String?.none) }
    for rejection in broken { record(rejection.code, rule: step.rule, rejection: rejection) }
  }
}

extension AndroidClaim {
  fileprivate var explainedFields: [Explanation.Field] {
    var fields: [Explanation.Field] = []
    if let publicKey {
      fields += [.base64("key_id", SHA256.hash(publicKey.x963)), .base64("public_key", publicKey.x963)]
    }
    fields.append(.init("provisioning", .text(chain.provisioning.rawValue)))
    if let description { fields += description.explainedFields }
    fields.append(.init("certificates", .list(chain.certificates.map { .fields($0.explainedFields) })))
    return fields
  }
}

extension KeyDescription {
  /// The parsed values, by the names of Google's schema.
  public var explainedFields: [Explanation.Field] {
    [
      .init(
        "keyDescription",
        .fields([
          .init("attestationVersion", .unsigned(attestationVersion)),
          .init("attestationSecurityLevel", .text(attestationSecurityLevel.name)),
          .init("keyMintVersion", .unsigned(keyMintVersion)),
          .init("keyMintSecurityLevel", .text(keyMintSecurityLevel.name)),
          .hex("challenge", challenge), .hex("uniqueId", uniqueID),
        ])),
      .init("hardwareEnforced", .fields(hardwareEnforced.explainedFields)),
      .init("softwareEnforced", .fields(softwareEnforced.explainedFields)),
    ]
  }
}

extension AuthorizationList {
  fileprivate var explainedFields: [Explanation.Field] {
    let known = AuthorizationTag.allCases.compactMap { tag in
      self[tag].map { Explanation.Field("\(tag)", $0.explained) }
    }
    return known + unknown.map { .hex("unknown \($0.tag)", $0.value) }
  }
}

extension AuthorizationList.Value {
  fileprivate var explained: Explanation.Value {
    switch self {
    case .flag: .boolean(true)
    case .number(let number): .unsigned(number)
    case .numbers(let numbers): .list(numbers.map { .unsigned($0) })
    case .bytes(let bytes): .text(Hex.encode(bytes))
    case .rootOfTrust(let root): .fields(root.explainedFields)
    case .applicationID(let application): .fields(application.explainedFields)
    }
  }
}

extension RootOfTrust {
  fileprivate var explainedFields: [Explanation.Field] {
    [
      .hex("verifiedBootKey", verifiedBootKey), .init("deviceLocked", .boolean(isDeviceLocked)),
      .init("verifiedBootState", .text(verifiedBootState.name)),
    ] + (verifiedBootHash.map { [.hex("verifiedBootHash", $0)] } ?? [])
  }
}

extension AttestationApplicationID {
  fileprivate var explainedFields: [Explanation.Field] {
    [
      .init(
        "packages",
        .list(
          packages.map { .fields([.init("name", .text($0.text)), .init("version", .unsigned($0.version))]) })),
      .init("signatureDigests", .list(signatureDigests.map { .text(Hex.encode($0)) })),
    ]
  }
}

extension Explanation.Value {
  /// A number; as text if it does not fit.
  fileprivate static func unsigned(_ number: UInt64) -> Self {
    Int(exactly: number).map { .number($0) } ?? .text(String(number))
  }
}

extension Certificate {
  fileprivate var explainedFields: [Explanation.Field] {
    let dates: [Explanation.Field] =
      hasReadableValidity
      ? [.init("not_before", .instant(notBefore)), .init("not_after", .instant(notAfter))]
      : [.init("validity", .text("cannot be read; the dates of a leaf do not count"))]
    return [
      .init("subject", .text(subject)),
      .init("serial_number", .text(AndroidStatusList.text(ofSerial: serialNumber))),
    ] + dates + [.hex("sha256", fingerprint)]
  }
}
