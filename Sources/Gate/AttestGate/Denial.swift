public import AppAttest
public import ByteCoding
internal import Cryptography

/// Why someone is not registered, or not let in: the rule that was broken, with the values that broke it.
///
/// For the log and for tests. What a stranger may learn of it is `code`, which does not tell a key that is unknown from
/// a signature that is wrong.
public enum Denial: Error, Sendable, Hashable {
  /// Nothing was brought that any rule looks at.
  case noCredentials
  /// Some part of an assertion came, this one did not.
  case partMissing(AssertionClaim.Name)
  case partRepeated(AssertionClaim.Name)
  /// A part of an assertion is not written as it must be.
  case partMalformed(AssertionClaim.Name, rule: String)
  /// A value of a registration is not written as it must be.
  case valueMalformed(RegistrationClaim.Name, rule: String)

  /// The nonce is not 64 lowercase hex digits.
  case nonceMalformed
  case nonceRefused(NonceFault)
  /// The nonce is ours and young enough, but has been used.
  case nonceUsed

  case attestationRefused(AttestationRejection)
  /// The receipt was made too long before or after now.
  case receiptNotFresh(created: Timestamp, now: Timestamp)
  /// The key is registered, by another request.
  case keyExists

  /// No such key is registered.
  case unknownKey
  /// The assertion cannot be read; no key was looked up.
  case assertionMalformed(AssertionRejection)
  case assertionRefused(AssertionRejection, AppID)
  case counterReplayed(SignCount, stored: SignCount, AppID)
  case keyRevoked(AppID)

  /// The key belongs to an app that is not configured any more.
  case appNotServed(AppID)
  /// The key's environment is not one that its app's configuration allows.
  case environmentRefused(AttestEnvironment, AppID)
  case categoryRefused(ValidationCategory?, AppID)
  /// The debug path does not take certificates with this subject.
  case certificateRefused(subject: String)

  /// No app is configured, so nothing of App Attest's kind can be proved.
  case notConfigured
  case storeUnavailable(StoreError)
  /// As many registrations are on their way as there is room for.
  case tooManyRegistrations
}

extension Denial {
  /// What the outside is told, in a stable word.
  public enum Code: String, Sendable, Hashable, CaseIterable {
    case noCredentials = "no_credentials"
    case malformedHeader = "malformed_header"
    case malformedValue = "malformed_value"
    case malformedAttestation = "malformed_attestation"
    case malformedAssertion = "malformed_assertion"
    case nonceInvalid = "nonce_invalid"
    case nonceExpired = "nonce_expired"
    case nonceUsed = "nonce_used"
    case chainUntrusted = "chain_untrusted"
    case certExpired = "cert_expired"
    case nonceMismatch = "nonce_mismatch"
    case keyIDMismatch = "key_id_mismatch"
    case counterReplayed = "counter_replayed"
    case receiptRefused = "receipt_refused"
    case keyRefused = "key_refused"
    case rpIDMismatch = "rp_id_mismatch"
    case environmentMismatch = "environment_mismatch"
    case categoryRefused = "category_refused"
    case certificateRefused = "certificate_refused"
    case keyRevoked = "key_revoked"
    case keyExists = "key_exists"
    case notConfigured = "not_configured"
    case storeUnavailable = "store_unavailable"
    case overloaded
  }

  /// The public code. An unknown key and a wrong signature have the same.
  public var code: Code {
    switch self {
    case .noCredentials: .noCredentials
    case .partMissing, .partRepeated, .partMalformed: .malformedHeader
    case .valueMalformed: .malformedValue
    case .nonceMalformed: .nonceInvalid
    case .nonceRefused(let fault): fault.code
    case .nonceUsed: .nonceUsed
    case .attestationRefused(let rejection): rejection.code
    case .receiptNotFresh: .receiptRefused
    case .keyExists: .keyExists
    case .unknownKey: .keyRefused
    case .assertionMalformed(let rejection), .assertionRefused(let rejection, _): rejection.code
    case .counterReplayed: .counterReplayed
    case .keyRevoked: .keyRevoked
    case .appNotServed: .rpIDMismatch
    case .environmentRefused: .environmentMismatch
    case .categoryRefused: .categoryRefused
    case .certificateRefused: .certificateRefused
    case .notConfigured: .notConfigured
    case .storeUnavailable(.overloaded), .tooManyRegistrations: .overloaded
    case .storeUnavailable: .storeUnavailable
    }
  }
}

extension NonceFault {
  fileprivate var code: Denial.Code {
    switch self {
    case .unknownKey, .forged, .retiredKey, .fromTheFuture: .nonceInvalid
    case .expired: .nonceExpired
    }
  }
}

extension AttestationRejection {
  fileprivate var code: Denial.Code {
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
}

extension ChainRejection {
  fileprivate var code: Denial.Code {
    switch self {
    case .expired, .notYetValid: .certExpired
    case .untrusted, .issuerIsNoAuthority, .leafIsAuthority, .leafMustNotSign, .strayCertificate, .unexpectedLength:
      .chainUntrusted
    // The gate could not do its work, which is mostly for want of memory: no word about the certificates.
    case .operationFailed: .overloaded
    }
  }
}

extension AssertionRejection {
  fileprivate var code: Denial.Code {
    switch self {
    case .notCBOR, .unexpectedMembers, .malformedAuthenticatorData: .malformedAssertion
    case .invalidSignature: .keyRefused
    case .rpIDMismatch: .rpIDMismatch
    case .counterNotGreater: .counterReplayed
    }
  }
}
