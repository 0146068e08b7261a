internal import AndroidKeyAttestation
internal import AppAttest
internal import ByteCoding
internal import Cryptography
public import Wire

extension Denial {
  /// The public code. An unknown key and a wrong signature have the same one.
  public var code: GateRefusalCode { report.code }

  /// The answer and the log line that follow from this denial: the one place to extend for a new case.
  public var report: RefusalReport {
    switch self {
    case .noCredentials: RefusalReport(.noCredentials)
    case .partMissing(let name):
      RefusalReport(
        .malformedHeader, "assertion_part_missing", text: "\(name.rawValue) is missing", detail: name.rawValue)
    case .partRepeated(let name):
      RefusalReport(
        .malformedHeader, "assertion_part_repeated", text: "\(name.rawValue) was sent more than once",
        detail: name.rawValue)
    case .partsUnreadable(let rule):
      RefusalReport(.malformedHeader, "assertion_carrier", text: "Malformed credentials: \(rule)", detail: rule)
    case .partMalformed(let name, let rule):
      RefusalReport(
        .malformedHeader, "assertion_part_malformed", text: "\(name.rawValue) \(rule)",
        detail: "\(name.rawValue): \(rule)")
    case .valueMalformed(let name, let rule):
      RefusalReport(
        .malformedValue, "registration_value_malformed", text: "\(name.rawValue) \(rule)",
        detail: "\(name.rawValue): \(rule)")

    case .nonceMalformed: RefusalReport(.nonceInvalid, "nonce_form")
    case .nonceRefused(let fault): RefusalReport(fault.code, fault.step, detail: fault.detail)
    case .nonceUsed: RefusalReport(.nonceUsed, "nonce_spent", followsVerification: true)

    // A chain of certificates costs milliseconds, although off the event loops. The nonce stays valid.
    case .attestationRefused(let rejection):
      RefusalReport(
        rejection.code, "attestation_" + rejection.step, text: rejection.text, detail: rejection.detail,
        app: rejection.appID.map(AppName.init), followsVerification: rejection.followsVerification)
    case .androidAttestationRefused(let rejection): rejection.report
    case .receiptNotFresh(let created, let now):
      RefusalReport(
        .clockWrong, "attestation_receipt_freshness",
        detail: "\(ClockWitness.text(ahead: now.since(created))): receipt created \(created), now \(now)",
        followsVerification: true)
    case .receiptTooOld(let created, let now):
      RefusalReport(
        .receiptRefused, "attestation_receipt_freshness", detail: "receipt created \(created), sent \(now)",
        followsVerification: true)
    case .keyExists: RefusalReport(.keyExists, followsVerification: true)

    // An unknown key costs as much as a wrong signature: the gate verifies with a decoy key.
    case .unknownKey: RefusalReport(.keyRefused, "key_unknown", followsVerification: true)
    case .assertionMalformed(let rejection):
      RefusalReport(rejection.code, "assertion_" + rejection.step, detail: rejection.detail)
    case .assertionRefused(let rejection, let app):
      RefusalReport(
        rejection.code, "assertion_" + rejection.step, detail: rejection.detail, app: app, followsVerification: true)
    case .androidProofRefused(let rejection, let app):
      RefusalReport(.keyRefused, "android_signature", detail: "\(rejection)", app: app, followsVerification: true)
    case .platformMismatch(let app):
      RefusalReport(.keyRefused, "platform", detail: app.platform.rawValue, app: app, followsVerification: true)
    case .counterReplayed(let found, let stored, let app):
      RefusalReport(
        .counterReplayed, "assertion_counter", detail: "\(found.value) after \(stored.value)", app: app,
        followsVerification: true)
    case .keyRevoked(let app): RefusalReport(.keyRevoked, app: app, followsVerification: true)
    case .riskTooHigh(let metric, let threshold, let app):
      RefusalReport(.riskTooHigh, detail: "\(metric), threshold \(threshold)", app: app, followsVerification: true)
    case .riskUnknown(let app): RefusalReport(.riskUnknown, app: app, followsVerification: true)
    case .riskOutdated(let risk, let app):
      RefusalReport(
        .riskOutdated, detail: risk.map { "\($0.metric) at \($0.at)" } ?? "no metric since the registration", app: app,
        followsVerification: true)

    // The device may have been updated since: a new key shows it, and the registration refuses one that was not.
    case .patchLevelOutdated(let level, let oldest, let app):
      RefusalReport(
        .riskOutdated, "patch_level", detail: "\(level), oldest accepted \(oldest)", app: app, followsVerification: true
      )

    case .appNotServed(let app):
      RefusalReport(
        app.platform == .ios ? .rpIDMismatch : .appRefused, "app_not_served", app: app, followsVerification: true)
    case .environmentRefused(let environment, let app):
      RefusalReport(
        .environmentMismatch, "environment", detail: environment.rawValue, app: app, followsVerification: true)
    case .categoryRefused(let category, let app):
      RefusalReport(
        .categoryRefused, "validation_category", detail: category?.name ?? "none reported", app: app,
        followsVerification: true)
    case .deviceRefused(let broken, let app):
      RefusalReport(
        broken.first?.refusalCode ?? .deviceRefused, "android_policy", text: AndroidRuleRejection.text(of: broken),
        detail: AndroidRuleRejection.detail(of: broken), app: app,
        followsVerification: true)
    case .certificateRefused(let subject):
      RefusalReport(.certificateRefused, "certificate_subject", detail: subject)

    case .notConfigured: RefusalReport(.notConfigured)
    case .platformNotConfigured(.ios): RefusalReport(.notConfigured, "ios_not_configured")
    case .platformNotConfigured(.android):
      RefusalReport(.notConfigured, "android_not_configured", text: "Server not configured for Android")
    case .statusListUnavailable(let age):
      RefusalReport(.statusListUnavailable, detail: age.map { "the list is \($0) old" } ?? "no list was read")
    // The failure is the gate's own: new connections from all clients would make it worse.
    case .storeUnavailable(let error):
      RefusalReport(
        error == .overloaded ? .overloaded : .storeUnavailable, error.step, detail: error.detail)
    case .tooManyRegistrations: RefusalReport(.overloaded, "registrations_overloaded")
    }
  }
}

extension NonceRejection {
  fileprivate var code: GateRefusalCode {
    switch self {
    case .unknownKey, .forged, .retiredKey, .fromTheFuture: .nonceInvalid
    case .expired: .nonceExpired
    }
  }

  fileprivate var step: String {
    switch self {
    case .unknownKey: "nonce_key_unknown"
    case .forged: "nonce_code"
    case .retiredKey: "nonce_key_retired"
    case .fromTheFuture: "nonce_future"
    case .expired: "nonce_age"
    }
  }

  fileprivate var detail: String? {
    switch self {
    case .unknownKey(let number), .retiredKey(let number): "key \(number)"
    case .forged: nil
    case .fromTheFuture(let ahead): "ahead by \(ahead)"
    case .expired(let age): "age \(age)"
    }
  }
}

extension AttestationRejection {
  fileprivate var code: GateRefusalCode {
    switch self {
    case .notCBOR, .unexpectedMembers, .unexpectedFormat, .unexpectedCertificateCount, .malformedCertificate,
      .malformedAuthenticatorData:
      .malformedAttestation
    case .untrustedChain(let rejection): rejection.code
    case .unexpectedLeafKey: .chainUntrusted
    case .nonceMissing, .malformedNonce, .nonceMismatch: .nonceMismatch
    case .keyIDMismatch, .credentialIDMismatch, .credentialKeyMismatch: .keyIDMismatch
    case .rpIDMismatch: .rpIDMismatch
    case .counterNotZero: .counterReplayed
    case .unknownEnvironment, .environmentNotAllowed: .environmentMismatch
    case .receipt(.untrustedChain(.operationFailed)): .overloaded
    case .receipt(let rejection): rejection.brokenStep == .format ? .malformedAttestation : .receiptRefused
    }
  }

  // Unreadable input is described by rule and position and never quoted.
  fileprivate var detail: String? {
    switch self {
    case .notCBOR(let error): "\(error)"
    case .unexpectedMembers(let part): part
    case .unexpectedCertificateCount(let count): "\(count) certificates"
    case .malformedCertificate(let error): Denial.bounded("x5c: \(error)")
    case .malformedAuthenticatorData(let fault): fault.description
    case .untrustedChain(let rejection): rejection.detail
    case .counterNotZero(let counter): "\(counter.value)"
    case .unknownEnvironment(let aaguid): "aaguid \(Hex.encode(aaguid))"
    case .environmentNotAllowed(let environment, _): environment.rawValue
    case .receipt(let rejection): rejection.detail
    case .unexpectedFormat, .unexpectedLeafKey, .nonceMissing, .malformedNonce, .nonceMismatch, .keyIDMismatch,
      .rpIDMismatch, .credentialIDMismatch, .credentialKeyMismatch:
      nil
    }
  }

  /// A text other than that of the code.
  fileprivate var text: String? {
    // A registration requires counter 0. A key with a higher counter can never be registered.
    if case .counterNotZero = self { "The key has signed already: attest a new key" } else { nil }
  }

  fileprivate var appID: AppID? {
    if case .environmentNotAllowed(_, let app) = self { app } else { nil }
  }
}

extension AndroidAttestationRejection {
  fileprivate var report: RefusalReport {
    RefusalReport(
      rules.first?.refusalCode ?? .malformedAttestation, "android_" + (rules.first?.step.rawValue ?? "format"),
      text: AndroidRuleRejection.text(of: rules), detail: AndroidRuleRejection.detail(of: rules),
      followsVerification: rules.contains { $0.step != .format })
  }
}

extension AndroidRuleRejection {
  fileprivate var refusalCode: GateRefusalCode {
    switch step {
    case .format, .keyDescription: .malformedAttestation
    case .nameChaining, .signatures, .root, .authorities, .attestationExtension: .chainUntrusted
    case .validity: .certExpired
    case .revocation: .attestationRevoked
    case .challenge: .nonceMismatch
    case .securityLevel, .origin, .purpose, .boot, .patchLevel, .key, .provisioning: .deviceRefused
    case .app: .appRefused
    }
  }

  /// Describes the broken rules, but for challenges: the nonce of a refused registration is still valid.
  fileprivate static func detail(of rules: [AndroidRuleRejection]) -> String {
    Denial.bounded(
      rules.map { rule in
        if case .challengeDiffers = rule { rule.code } else { rule.description }
      }.joined(separator: "; "))
  }

  /// Names the broken rules. They say nothing that a client could not find out from its own certificates and policy.
  fileprivate static func text(of rules: [AndroidRuleRejection]) -> String {
    Denial.bounded("The attestation is refused: " + rules.map(\.code).joined(separator: ", "))
  }
}

extension AssertionRejection {
  fileprivate var code: GateRefusalCode {
    switch self {
    case .notCBOR, .unexpectedMembers, .malformedAuthenticatorData: .malformedAssertion
    case .invalidSignature: .keyRefused
    case .rpIDMismatch: .rpIDMismatch
    case .counterNotGreater: .counterReplayed
    }
  }

  fileprivate var detail: String? {
    switch self {
    case .notCBOR(let error): "\(error)"
    case .malformedAuthenticatorData(let fault): fault.description
    case .counterNotGreater(let found, let last): "\(found.value) after \(last.value)"
    case .unexpectedMembers, .invalidSignature, .rpIDMismatch: nil
    }
  }
}

extension AttestationRejection {
  /// Whether a chain of certificates was verified before. `false` for an attestation that is malformed, and if the gate
  /// itself failed.
  fileprivate var followsVerification: Bool {
    switch self {
    case .notCBOR, .unexpectedMembers, .unexpectedFormat, .unexpectedCertificateCount, .malformedCertificate,
      .malformedAuthenticatorData, .untrustedChain(.operationFailed), .receipt(.untrustedChain(.operationFailed)):
      false
    // A receipt that cannot be read is found before the chain is verified.
    case .receipt(let rejection): rejection.brokenStep != .format
    case .untrustedChain, .unexpectedLeafKey, .nonceMissing, .malformedNonce, .nonceMismatch, .keyIDMismatch,
      .rpIDMismatch, .counterNotZero, .unknownEnvironment, .environmentNotAllowed, .credentialIDMismatch,
      .credentialKeyMismatch:
      true
    }
  }
}

extension ChainRejection {
  fileprivate var code: GateRefusalCode {
    switch self {
    case .expired, .notYetValid: .certExpired
    case .untrusted, .issuerIsNoAuthority, .leafIsAuthority, .leafMustNotSign, .criticalExtension, .unreadableExtension,
      .strayCertificate, .unexpectedLength:
      .chainUntrusted
    // The gate itself failed, mostly for lack of memory. This says nothing about the certificates.
    case .operationFailed: .overloaded
    }
  }

  // The subject is omitted: the subject of a leaf is its key id.
  fileprivate var detail: String {
    switch self {
    case .notYetValid(_, let notBefore, _): "not valid before \(notBefore)"
    case .expired(_, let notAfter, _): "not valid after \(notAfter)"
    case .untrusted(_, let reason): reason
    case .issuerIsNoAuthority: "issuer is not a certificate authority"
    case .criticalExtension(_, let identifier): "critical extension \(identifier) is not processed"
    case .unreadableExtension: "unreadable or contradictory extension"
    case .leafIsAuthority: "leaf is a certificate authority"
    case .leafMustNotSign: "leaf key usage does not allow signatures"
    case .strayCertificate: "certificate outside the chain"
    case .unexpectedLength(let found, let expected): "\(found) certificates, expected \(expected)"
    case .operationFailed(let reason): reason
    }
  }
}

extension ReceiptRejection {
  fileprivate var detail: String? {
    switch self {
    case .untrustedChain(let rejection): rejection.detail
    case .tooLong, .notSignedData, .malformedFields, .missingField, .repeatedField, .malformedField, .unexpectedKind,
      .environmentMismatch:
      Denial.bounded(description)
    case .expired(let end, let instant): "expired \(end), now \(instant)"
    case .markerMissing, .invalidSignature, .appIDMismatch, .publicKeyMismatch, .clientDataHashMismatch: nil
    }
  }
}

extension StoreError {
  fileprivate var detail: String? {
    switch self {
    case .unreachable(let reason), .corrupt(let reason), .inDoubt(let reason), .failed(let reason): reason
    case .readOnly, .full, .locked, .overloaded, .closed: nil
    }
  }
}

extension Denial {
  /// Object identifiers come from the client, so the text can have any length.
  fileprivate static func bounded(_ text: String) -> String { String(decoding: text.utf8.prefix(200), as: UTF8.self) }
}
