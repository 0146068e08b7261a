internal import ByteCoding

/// Why an operation is refused. One switch of the service defines the public form.
public enum MFARefusal: Error, Sendable, Hashable {
  /// The request is not written as it must be.
  case invalid(InvalidValue)
  /// The signature, challenge, device or user is wrong. The client does not learn which.
  case authenticationFailed(SignInRejection)
  /// There is no valid access token.
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
  /// Another account uses the device id.
  case deviceExists
  case tooManyDevices(limit: Int)
  /// The calling app instance has created so many accounts.
  case tooManyAccounts(limit: Int)
  case noPhoneNumber
  case noEmailAddress
  /// There is no such thing, or it is another's.
  case notFound
  /// The client does not learn the reason.
  case codeInvalid(CodeRejection)
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
  /// The response of a security key at a sign-in is refused. The client does not learn the reason.
  case securityKeyRefused(WebAuthnRejection)
  /// The registration of a security key is refused. The user's own client learns the reason.
  case registrationRefused(WebAuthnRejection)
  /// The credential is registered already, by whomever.
  case securityKeyExists
  case tooManySecurityKeys(limit: Int)
  /// The account has the most tokens and added authenticator apps.
  case tooManyAuthenticators(limit: Int)
  /// It is the last authenticator of the account; only `mfa.disable` removes it.
  case lastAuthenticator
  /// The operator has not configured an identity provider.
  case federationOff
  /// The answer with an ID token is refused. The client does not learn the reason.
  case federationRefused(FederationRejection)
  /// The account or the user of the provider is connected otherwise.
  case identityConnected
}

/// Which step of a sign-in by signature failed.
public enum SignInRejection: String, Sendable, Hashable, CaseIterable {
  case challengeUnknown = "challenge_unknown"
  /// It was given for another name or device.
  case challengeOfAnother = "challenge_of_another"
  case challengeUsed = "challenge_used"
  case challengeExpired = "challenge_expired"
  case challengeExhausted = "challenge_exhausted"
  /// The caller's attested key differs from that of the challenge or the device.
  case attestedKey = "attested_key"
  case deviceUnknown = "device_unknown"
  case deviceOfAnother = "device_of_another"
  /// It signs in by codes.
  case deviceWithoutKey = "device_without_key"
  /// It was removed, or got another key, while the signature was checked.
  case deviceChanged = "device_changed"
  case signature
  /// The key is not unlocked in the way that the policy requires.
  case unlock
}

/// Why a code is refused.
public enum CodeRejection: String, Sendable, Hashable, CaseIterable {
  case noCode = "no_code"
  case used = "code_used"
  case exhausted = "code_exhausted"
  case wrong = "code_wrong"
}

extension MFARefusal {
  /// The reason for the log and the history. The client learns less.
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
    case .tooManyAuthenticators: "too_many_authenticators"
    case .lastAuthenticator: "last_authenticator"
    case .federationOff: "identity_provider_off"
    case .federationRefused(let fault): fault.rawValue
    case .identityConnected: "identity_connected"
    }
  }
}

extension MFARefusal {
  public init(_ value: InvalidValue) { self = .invalid(value) }
}
