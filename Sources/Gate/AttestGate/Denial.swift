public import AppAttest
public import ByteCoding
internal import Cryptography

/// The reason why a registration or an admission is refused: the rule that failed, and the values that broke it.
///
/// It is meant for the log and for tests. A client receives only `code`, which is the same for an unknown key and for
/// a wrong signature.
public enum Denial: Error, Sendable, Hashable {
  /// The client sent no credentials that any rule checks.
  case noCredentials
  /// Some part of an assertion was sent, but not this one.
  case partMissing(AssertionClaim.Name)
  case partRepeated(AssertionClaim.Name)
  /// A part of an assertion is not encoded correctly.
  case partMalformed(AssertionClaim.Name, rule: String)
  /// A value of a registration is not encoded correctly.
  case valueMalformed(RegistrationClaim.Name, rule: String)

  /// The nonce is not 64 lowercase hex digits.
  case nonceMalformed
  case nonceRefused(NonceFault)
  /// The nonce was issued here and has not expired, but was already used.
  case nonceUsed

  case attestationRefused(AttestationRejection)
  /// The receipt was created too long before or after now.
  case receiptNotFresh(created: Timestamp, now: Timestamp)
  /// Another request registered the key before.
  case keyExists

  /// The key is not registered.
  case unknownKey
  /// The assertion cannot be parsed; no key was looked up.
  case assertionMalformed(AssertionRejection)
  case assertionRefused(AssertionRejection, AppID)
  case counterReplayed(SignCount, stored: SignCount, AppID)
  case keyRevoked(AppID)

  /// The key belongs to an app that is no longer configured.
  case appNotServed(AppID)
  /// The configuration of the app does not allow the key's environment.
  case environmentRefused(AttestEnvironment, AppID)
  case categoryRefused(ValidationCategory?, AppID)
  /// The debug path does not accept certificates with this subject.
  case certificateRefused(subject: String)

  /// No app is configured, so no attestation or assertion can be verified.
  case notConfigured
  case storeUnavailable(StoreError)
  /// The maximum number of registrations is already in progress.
  case tooManyRegistrations
}

extension Denial {
  /// The stable word that the client receives.
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

  /// The public code. An unknown key and a wrong signature have the same one.
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
    // The gate itself failed, mostly for lack of memory. This says nothing about the certificates.
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
