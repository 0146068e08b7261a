internal import ByteCoding
internal import MFADomain

/// The stable codes of refusals.
public enum RefusalCode: String, Sendable, Hashable, CaseIterable {
  case notAttested = "not_attested"
  case invalidRequest = "invalid_request"
  case requestTimeout = "request_timeout"
  case payloadTooLarge = "payload_too_large"
  case unsupportedMediaType = "unsupported_media_type"
  case notFound = "not_found"
  case methodNotAllowed = "method_not_allowed"
  case authenticationFailed = "authentication_failed"
  case sessionRequired = "session_required"
  case secondFactorRequired = "mfa_required"
  case freshProofRequired = "insufficient_user_authentication"
  case boundElsewhere = "device_mismatch"
  case forbidden
  case deviceNotEnrolled = "device_not_enrolled"
  case deviceExists = "device_exists"
  case tooManyDevices = "too_many_devices"
  case tooManyAccounts = "too_many_accounts"
  case noPhoneNumber = "no_phone_number"
  case noEmailAddress = "no_email_address"
  case codeInvalid = "invalid_code"
  case codeExpired = "expired_code"
  case rateLimited = "rate_limited"
  case accountLocked = "account_locked"
  case alreadyEnabled = "already_enabled"
  case notEnabled = "not_enabled"
  case securityKeyExists = "key_exists"
  case tooManySecurityKeys = "too_many_keys"
  case tooManyAuthenticators = "too_many_authenticators"
  case lastAuthenticator = "last_authenticator"
  case recoveryPending = "recovery_pending"
  case identityConnected = "identity_connected"
  case idempotencyKeyReused = "idempotency_key_reused"
  case requestInProgress = "request_in_progress"
  case unavailable
  case internalError = "internal_error"

  /// The HTTP status.
  public var status: Int {
    switch self {
    case .invalidRequest: 400
    case .notAttested, .authenticationFailed, .sessionRequired, .freshProofRequired, .codeInvalid: 401
    case .secondFactorRequired, .boundElsewhere, .forbidden: 403
    case .notFound, .deviceNotEnrolled: 404
    case .methodNotAllowed: 405
    case .requestTimeout: 408
    case .deviceExists, .tooManyDevices, .tooManyAccounts, .noPhoneNumber, .noEmailAddress, .alreadyEnabled,
      .notEnabled, .securityKeyExists, .tooManySecurityKeys, .tooManyAuthenticators, .lastAuthenticator,
      .recoveryPending, .identityConnected, .requestInProgress:
      409
    case .codeExpired: 410
    case .payloadTooLarge: 413
    case .unsupportedMediaType: 415
    case .idempotencyKeyReused: 422
    case .accountLocked: 423
    case .rateLimited: 429
    case .internalError: 500
    case .unavailable: 503
    }
  }
}

/// A refusal in the form that clients receive.
public struct PublicRefusal: Error, Sendable, Hashable {
  /// The code.
  public let code: RefusalCode
  /// The text for people.
  public let text: String
  /// The time to wait, in whole seconds.
  public let retryAfter: Int?
  /// The value of `WWW-Authenticate`. Every 401 has one (RFC 9110, section 15.5.2).
  public let authenticate: String?
  /// The methods of the path, for the header `Allow`.
  public let allowed: [String]
  /// The exceeded limit, for `rateLimited`.
  public let limit: Limit

  /// A kind of limit.
  public enum Limit: String, Sendable, Hashable {
    /// Guesses of codes, or sent codes.
    case codes
    /// Requests of any kind.
    case requests
  }

  init(
    _ code: RefusalCode, _ text: String, retryAfter: Duration? = nil, authenticate: String? = nil,
    allowed: [String] = [], limit: Limit = .codes
  ) {
    self.code = code
    self.text = text
    // Rounded up, so that a client that waits this long has waited long enough.
    self.retryAfter = retryAfter.map { max(1, Int($0.components.seconds) + ($0.components.attoseconds > 0 ? 1 : 0)) }
    self.authenticate = authenticate ?? (code.status == 401 ? Self.challenge(code) : nil)
    self.allowed = allowed
    self.limit = limit
  }

  /// The challenge for a 401: the gate's identity or a session is missing.
  private static func challenge(_ code: RefusalCode) -> String {
    (code == .notAttested ? "AppAttest" : "Bearer") + " realm=\"mfa-backend\""
  }

  /// The header fields of the refusal.
  var fields: [(name: String, value: String)] {
    var fields: [(name: String, value: String)] = []
    if let retryAfter {
      fields.append(("Retry-After", String(retryAfter)))
      // draft-ietf-httpapi-ratelimit-headers: r is the remaining quota, t the seconds until it is reset.
      if code == .rateLimited { fields.append(("RateLimit", "\"\(limit.rawValue)\";r=0;t=\(retryAfter)")) }
    }
    if let authenticate { fields.append(("WWW-Authenticate", authenticate)) }
    if !allowed.isEmpty { fields.append(("Allow", allowed.joined(separator: ", "))) }
    return fields
  }

  /// Converts any error to a refusal. An unexpected error is a fault of the server, and its details are not revealed.
  init(_ error: any Error) {
    switch error {
    case let refusal as MFARefusal: self.init(refusal)
    case let value as InvalidValue: self.init(MFARefusal.invalid(value))
    case let fault as OperationInputError: self.init(fault)
    case is IdentityUsedBefore: self.init(OperationInputError.notAttested)
    case let refusal as PublicRefusal: self = refusal
    case IdempotencyRefusal.keyReused:
      self.init(.idempotencyKeyReused, "The idempotency key was used for another request")
    case IdempotencyRefusal.inProgress:
      self.init(.requestInProgress, "The first request with this idempotency key is running", retryAfter: .seconds(1))
    // A client that gets this from a stopping process can retry at the next process.
    case is MFAStoreError, is CancellationError:
      self.init(.unavailable, "Service temporarily unavailable", retryAfter: .seconds(1))
    default: self.init(.internalError, "Internal error")
    }
  }

  init(_ refusal: MFARefusal) {
    switch refusal {
    case .invalid(let value): self.init(.invalidRequest, "\(value.field) \(value.rule)")
    case .securityKeyRefused(.backupEligibility):
      // The signature was valid: this is told to the holder of the key alone.
      self.init(
        .authenticationFailed,
        "This security key has changed since its registration: sign in otherwise, remove it, and register it again")
    case .authenticationFailed, .securityKeyRefused, .federationRefused:
      self.init(.authenticationFailed, "Authentication failed")
    case .sessionRequired:
      self.init(.sessionRequired, "A valid access token is required", authenticate: "Bearer error=\"invalid_token\"")
    case .secondFactorRequired: self.init(.secondFactorRequired, "MFA verification required")
    case .freshProofRequired(let age):
      // RFC 9470, section 3.
      self.init(
        .freshProofRequired, "Authenticate again to do this",
        authenticate: "Bearer error=\"insufficient_user_authentication\", max_age=\(age.components.seconds)")
    case .boundElsewhere: self.init(.boundElsewhere, "This device is bound to another app instance")
    case .forbidden: self.init(.forbidden, "Not allowed")
    case .deviceNotEnrolled: self.init(.deviceNotEnrolled, "Device not enrolled")
    case .deviceExists: self.init(.deviceExists, "Device already enrolled")
    case .tooManyDevices(let limit): self.init(.tooManyDevices, "An account has at most \(limit) devices")
    case .tooManyAccounts(let limit):
      self.init(.tooManyAccounts, "An app instance can create at most \(limit) accounts")
    case .noEmailAddress: self.init(.noEmailAddress, "No e-mail address on file")
    case .noPhoneNumber: self.init(.noPhoneNumber, "No phone number on file")
    case .notFound: self.init(.notFound, "Not found")
    case .codeInvalid: self.init(.codeInvalid, "Invalid code. Please try again.")
    case .codeExpired: self.init(.codeExpired, "Code has expired. Please generate a new one.")
    case .rateLimited(let wait):
      self.init(.rateLimited, "Too many attempts. Please wait before trying again.", retryAfter: wait)
    case .accountLocked(nil): self.init(.accountLocked, "The account is locked. Its operator can unlock it.")
    case .accountLocked(let wait?):
      self.init(
        .accountLocked, "Too many failed attempts. Your account has been temporarily locked.", retryAfter: wait)
    case .alreadyEnabled: self.init(.alreadyEnabled, "MFA is already enabled for this account")
    case .notEnabled: self.init(.notEnabled, "MFA is not enabled for this account")
    case .recoveryWaits(let wait):
      self.init(.recoveryPending, "A recovery of this account is waiting", retryAfter: wait)
    case .overloaded(let wait): self.init(.unavailable, "Service temporarily unavailable", retryAfter: wait)
    case .securityKeysOff: self.init(.unavailable, "Security keys are turned off")
    case .federationOff: self.init(.unavailable, "Signing in with an identity provider is turned off")
    case .identityConnected:
      self.init(.identityConnected, "The account or the user of the identity provider is already connected")
    case .registrationRefused(let fault):
      self.init(.invalidRequest, "The security key was not registered: \(Self.text(of: fault))")
    case .securityKeyExists: self.init(.securityKeyExists, "This security key is already registered")
    case .tooManySecurityKeys(let limit):
      self.init(.tooManySecurityKeys, "An account has at most \(limit) security keys")
    case .tooManyAuthenticators(let limit):
      self.init(.tooManyAuthenticators, "An account has at most \(limit) added authenticators and tokens")
    case .lastAuthenticator:
      self.init(
        .lastAuthenticator,
        "This is the last authenticator of the account: add another one first, or use mfa.disable, which turns the "
          + "second factor off")
    }
  }

  /// The reason why a registration failed, for the developer of the client.
  private static func text(of fault: WebAuthnRejection) -> String {
    switch fault {
    case .clientData: "clientDataJSON is not the client data of a browser or an app"
    case .type: "clientDataJSON is from another ceremony"
    case .challengeUnknown: "request options first, in this session, and answer the newest"
    case .challengeUsed: "the challenge has been used; request options again"
    case .challengeExpired: "the challenge has expired; request options again"
    case .challenge: "the challenge in clientDataJSON differs from the options"
    case .origin: "the origin is not allowed by the server's settings"
    case .crossOrigin: "the credential was created in a frame of another site"
    case .authenticatorData: "authData is malformed"
    case .extensions: "the extensions in authData are malformed"
    case .relyingParty: "the credential is for another relying party"
    case .userPresence: "the key does not report user presence"
    case .userVerification: "the key did not verify its user by PIN or biometry"
    case .backupState, .backupEligibility: "the backup flags contradict each other"
    case .attestedCredential: "authData contains no credential"
    case .credentialID: "the credential id is too long, or differs from id and rawId"
    case .publicKey: "the public key is malformed, too short or too long"
    case .algorithm: "the algorithm of the public key is not one of the options"
    case .attestation: "the attestation is malformed, or its signature is wrong"
    case .credentialUnknown, .userHandle, .signature, .signatureCount: "the credential does not belong to this account"
    }
  }

  init(_ fault: OperationInputError) {
    switch fault {
    case .notAttested: self.init(.notAttested, "The gate's identity is missing or not valid")
    case .malformedJSON: self.init(.invalidRequest, "The body must be UTF-8 JSON without duplicate names in an object")
    case .heapedMarks:
      self.init(.invalidRequest, "A text has more than \(StreamSafeText.mostMarks) combining marks in a row")
    case .fieldMissing(let field): self.init(.invalidRequest, "\(field) is required")
    case .fieldOfWrongType(let field): self.init(.invalidRequest, "\(field) has the wrong type")
    case .fieldGivenTwice(let field): self.init(.invalidRequest, "\(field) is given twice")
    case .bodyTooSlow: self.init(.requestTimeout, "The body took too long")
    case .bodyTooLarge: self.init(.payloadTooLarge, "The body is too large")
    case .notJSON: self.init(.unsupportedMediaType, "The body must be application/json")
    case .idempotencyKeyMalformed:
      self.init(.invalidRequest, "The idempotency key must be one text of 1 to 128 visible ASCII characters")
    case .socketVersion: self.init(.invalidRequest, "Sec-WebSocket-Version must be 13")
    case .socketKey: self.init(.invalidRequest, "Sec-WebSocket-Key must be one text of 16 bytes in base64")
    case .unknownOperation: self.init(.notFound, "Not found")
    case .methodNotAllowed(let methods): self.init(.methodNotAllowed, "Method not allowed", allowed: methods)
    case .tooFast(let wait):
      self.init(
        .rateLimited, "Too many attempts. Please wait before trying again.", retryAfter: wait, limit: .requests)
    }
  }
}
