public import AppAttest
internal import ByteCoding
internal import Cryptography

extension Denial {
  /// The rule that failed, as a stable word for the log. It is more specific than `code`.
  public var step: String {
    switch self {
    case .noCredentials: "no_credentials"
    case .partMissing: "assertion_part_missing"
    case .partRepeated: "assertion_part_repeated"
    case .partMalformed: "assertion_part_malformed"
    case .valueMalformed: "registration_value_malformed"
    case .nonceMalformed: "nonce_form"
    case .nonceRefused(let fault): fault.step
    case .nonceUsed: "nonce_spent"
    case .attestationRefused(let rejection): "attestation_" + rejection.step
    case .receiptNotFresh: "attestation_receipt_freshness"
    case .keyExists: "key_exists"
    case .unknownKey: "key_unknown"
    case .assertionMalformed(let rejection), .assertionRefused(let rejection, _): "assertion_" + rejection.step
    case .counterReplayed: "assertion_counter"
    case .keyRevoked: "key_revoked"
    case .appNotServed: "app_not_served"
    case .environmentRefused: "environment"
    case .categoryRefused: "validation_category"
    case .certificateRefused: "certificate_subject"
    case .notConfigured: "not_configured"
    case .storeUnavailable(let error): error.step
    case .tooManyRegistrations: "registrations_overloaded"
    }
  }

  /// The app that the refused key belongs to, if known.
  public var appID: AppID? {
    switch self {
    case .assertionRefused(_, let app), .counterReplayed(_, _, let app), .keyRevoked(let app), .appNotServed(let app),
      .environmentRefused(_, let app), .categoryRefused(_, let app),
      .attestationRefused(.environmentNotAllowed(_, let app)):
      app
    case .noCredentials, .partMissing, .partRepeated, .partMalformed, .valueMalformed, .nonceMalformed, .nonceRefused,
      .nonceUsed, .attestationRefused, .receiptNotFresh, .keyExists, .unknownKey, .assertionMalformed,
      .certificateRefused, .notConfigured, .storeUnavailable, .tooManyRegistrations:
      nil
    }
  }

  /// Further details for the operator, or `nil`. Never contains a nonce, a key id or a part of an assertion.
  public var detail: String? {
    switch self {
    case .partMissing(let name), .partRepeated(let name): name.rawValue
    case .partMalformed(let name, let rule): "\(name.rawValue): \(rule)"
    case .valueMalformed(let name, let rule): "\(name.rawValue): \(rule)"
    case .nonceRefused(let fault): fault.detail
    case .attestationRefused(let rejection): rejection.detail
    case .assertionMalformed(let rejection), .assertionRefused(let rejection, _): rejection.detail
    case .environmentRefused(let environment, _): environment.rawValue
    case .receiptNotFresh(let created, let now): "created \(created), now \(now)"
    case .counterReplayed(let found, let stored, _): "\(found.value) after \(stored.value)"
    case .categoryRefused(let category, _): category?.name ?? "none reported"
    case .certificateRefused(let subject): subject
    case .storeUnavailable(let error): error.detail
    case .noCredentials, .nonceMalformed, .nonceUsed, .keyExists, .unknownKey, .keyRevoked, .appNotServed,
      .notConfigured,
      .tooManyRegistrations:
      nil
    }
  }
}

extension AttestationRejection {
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

extension AssertionRejection {
  fileprivate var detail: String? {
    switch self {
    case .notCBOR(let error): "\(error)"
    case .malformedAuthenticatorData(let fault): fault.description
    case .counterNotGreater(let found, let last): "\(found.value) after \(last.value)"
    case .unexpectedMembers, .invalidSignature, .rpIDMismatch: nil
    }
  }
}

extension Denial {
  /// Object identifiers come from the client, so the text can have any length.
  fileprivate static func bounded(_ text: String) -> String { String(text.prefix(200)) }
}

extension ChainRejection {
  // The subject is omitted: the subject of a leaf is its key id.
  fileprivate var detail: String {
    switch self {
    case .notYetValid(_, let notBefore, _): "not valid before \(notBefore)"
    case .expired(_, let notAfter, _): "not valid after \(notAfter)"
    case .untrusted(_, let reason): reason
    case .issuerIsNoAuthority: "issuer is not a certificate authority"
    case .leafIsAuthority: "leaf is a certificate authority"
    case .leafMustNotSign: "leaf key usage does not allow signatures"
    case .strayCertificate: "certificate outside the chain"
    case .unexpectedLength(let found, let expected): "\(found) certificates, expected \(expected)"
    case .operationFailed(let reason): reason
    }
  }
}

extension NonceFault {
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

extension StoreError {
  fileprivate var detail: String? {
    switch self {
    case .unreachable(let reason), .corrupt(let reason), .inDoubt(let reason), .failed(let reason): reason
    case .readOnly, .full, .locked, .overloaded, .closed: nil
    }
  }
}
