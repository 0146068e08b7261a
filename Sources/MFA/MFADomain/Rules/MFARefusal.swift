internal import ByteCoding

/// Why an operation does not do what was asked. What the outside reads of it is written in one switch of the service.
public enum MFARefusal: Error, Sendable, Hashable {
  /// The request is not written as it must be.
  case invalid(InvalidValue)
  /// Signature, challenge, device or user are wrong; which of them is not said to the outside.
  case authenticationFailed(SignInFault)
  /// No access token came, or one that is not good any more.
  case sessionRequired
  /// The session must first give the second factor.
  case secondFactorRequired
  /// The operation needs a proof that is at most so old (RFC 9470).
  case freshProofRequired(maximumAge: Duration)
  /// Another app instance is bound to the device or the session of `account`, the key of its name.
  case boundElsewhere(account: String)
  /// The session belongs to another user, or has not the right.
  case forbidden
  case deviceNotEnrolled
  /// The device id belongs to someone, who is not the caller.
  case deviceExists
  case tooManyDevices(limit: Int)
  /// The calling app instance has created so many accounts.
  case tooManyAccounts(limit: Int)
  case noPhoneNumber
  case noEmailAddress
  /// There is no such thing, or it is another's.
  case notFound
  /// Why is not said to the outside.
  case codeInvalid(CodeFault)
  case codeExpired
  case rateLimited(retryAfter: Duration)
  case accountLocked(retryAfter: Duration?)
  case alreadyEnabled
  case notEnabled
  /// A recovery of the account is open: it cannot be completed, or no other be begun, before so much time is over.
  case recoveryWaits(retryAfter: Duration)
  case overloaded(retryAfter: Duration)
  /// The operator has not turned security keys on.
  case securityKeysOff
  /// A security key's answer to a sign-in is not taken. Why is not said to the outside.
  case securityKeyRefused(WebAuthnFault)
  /// A security key is not registered. The user's own client is told why.
  case registrationRefused(WebAuthnFault)
  /// The credential is registered already, by whomever.
  case securityKeyExists
  case tooManySecurityKeys(limit: Int)
}

/// Which step of a sign-in by signature failed.
public enum SignInFault: String, Sendable, Hashable, CaseIterable {
  case challengeUnknown = "challenge_unknown"
  /// It was given for another name or device.
  case challengeOfAnother = "challenge_of_another"
  case challengeUsed = "challenge_used"
  case challengeExpired = "challenge_expired"
  case challengeExhausted = "challenge_exhausted"
  /// The caller's attested key is not the one that the challenge or the device is bound to.
  case attestedKey = "attested_key"
  case deviceUnknown = "device_unknown"
  case deviceOfAnother = "device_of_another"
  /// It signs in by codes.
  case deviceWithoutKey = "device_without_key"
  /// It was removed, or got another key, while the signature was checked.
  case deviceChanged = "device_changed"
  case signature
  /// It is unlocked by something else than the policy asks for.
  case unlock
}

/// Why a code is not taken.
public enum CodeFault: String, Sendable, Hashable, CaseIterable {
  case noCode = "no_code"
  case used = "code_used"
  case exhausted = "code_exhausted"
  case wrong = "code_wrong"
}

extension MFARefusal {
  /// What the log and the history say of it. The outside is told less.
  public var cause: String {
    switch self {
    case .invalid(let value): "invalid_\(value.field)"
    case .authenticationFailed(let fault): fault.rawValue
    case .sessionRequired: "no_session"
    case .secondFactorRequired: "second_factor"
    case .freshProofRequired: "proof_too_old"
    case .boundElsewhere: "attested_key"
    case .forbidden: "forbidden"
    case .deviceNotEnrolled: "device_not_enrolled"
    case .deviceExists: "device_exists"
    case .tooManyDevices: "too_many_devices"
    case .tooManyAccounts: "too_many_accounts"
    case .noPhoneNumber: "no_phone_number"
    case .noEmailAddress: "no_email_address"
    case .notFound: "not_found"
    case .codeInvalid(let fault): fault.rawValue
    case .codeExpired: "code_expired"
    case .rateLimited: "rate"
    case .accountLocked: "locked"
    case .alreadyEnabled: "already_enabled"
    case .notEnabled: "not_enabled"
    case .recoveryWaits: "recovery_waits"
    case .overloaded: "overload"
    case .securityKeysOff: "security_keys_off"
    case .securityKeyRefused(let fault), .registrationRefused(let fault): fault.rawValue
    case .securityKeyExists: "credential_known"
    case .tooManySecurityKeys: "too_many_keys"
    }
  }
}

extension MFARefusal {
  public init(_ value: InvalidValue) { self = .invalid(value) }
}
