/// The name, the route and the types of an operation: what server and client must agree on.
public struct WireOperation<Request: WireValue, Response: WireValue>: Sendable {
  /// The method in a socket's JSON-RPC, and the name in documents.
  public let name: String
  /// The HTTP method.
  public let method: WireMethod
  /// The path after the prefix `/api/v1`. `{name}` stands for a segment that is a field of the request.
  public let path: String

  init(_ name: String, _ method: WireMethod, _ path: String) {
    self.name = name
    self.method = method
    self.path = path
  }
}

/// The HTTP method of an operation. The request is in the query of `GET` and `DELETE`, and in the body of `POST`.
public enum WireMethod: String, Sendable, Hashable {
  /// GET.
  case get = "GET"
  /// POST.
  case post = "POST"
  /// DELETE.
  case delete = "DELETE"
}

/// The operations of the backend. Their rules, access and refusals are in its OpenAPI document.
public enum MFAOperations {
  // MARK: Administration

  /// `GET /admin/users`.
  public static let accounts = WireOperation<AccountsRequest, AccountList>("admin.users", .get, "/admin/users")
  /// `POST /admin/lock`.
  public static let lockAccount = WireOperation<AccountRequest, RevokeResponse>("admin.lock", .post, "/admin/lock")
  /// `POST /admin/unlock`.
  public static let unlockAccount = WireOperation<AccountRequest, RevokeResponse>(
    "admin.unlock", .post, "/admin/unlock")
  /// `POST /admin/reset`.
  public static let resetAccount = WireOperation<AccountRequest, ResetResponse>("admin.reset", .post, "/admin/reset")
  /// `POST /admin/remove-device`.
  public static let removeDevice = WireOperation<DeviceRequest, RevokeResponse>(
    "admin.remove-device", .post, "/admin/remove-device")
  /// `GET /admin/users/{username}/history`.
  public static let accountHistory = WireOperation<HistoryRequest, History>(
    "admin.history", .get, "/admin/users/{username}/history")

  // MARK: Signing in

  /// `POST /auth/initiate`.
  public static let initiateSignIn = WireOperation<DeviceRequest, ChallengeResponse>(
    "auth.initiate", .post, "/auth/initiate")
  /// `POST /auth/verify-signature`.
  public static let verifySignature = WireOperation<VerifySignatureRequest, TokenResponse>(
    "auth.verify-signature", .post, "/auth/verify-signature")
  /// `POST /auth/request-otp`.
  public static let requestOTP = WireOperation<RequestOTPRequest, RequestOTPResponse>(
    "auth.request-otp", .post, "/auth/request-otp")
  /// `POST /auth/verify-otp`.
  public static let verifyOTP = WireOperation<VerifyOTPRequest, TokenResponse>(
    "auth.verify-otp", .post, "/auth/verify-otp")

  // MARK: Identity provider

  /// `POST /auth/oidc/challenge`.
  public static let identityChallenge = WireOperation<EmptyRequest, IdentityChallengeResponse>(
    "auth.oidc-challenge", .post, "/auth/oidc/challenge")
  /// `POST /auth/oidc`.
  public static let signInWithIdentity = WireOperation<IdentityTokenRequest, TokenResponse>(
    "auth.oidc", .post, "/auth/oidc")
  /// `POST /auth/oidc/bind`.
  public static let bindIdentity = WireOperation<IdentityTokenRequest, MessageResponse>(
    "auth.oidc-bind", .post, "/auth/oidc/bind")
  /// `GET /auth/oidc`.
  public static let identities = WireOperation<EmptyRequest, IdentityList>("auth.oidc-identities", .get, "/auth/oidc")
  /// `POST /auth/oidc/unbind`.
  public static let unbindIdentity = WireOperation<EmptyRequest, MessageResponse>(
    "auth.oidc-unbind", .post, "/auth/oidc/unbind")

  // MARK: Authenticator and e-mail codes

  /// `POST /auth/mfa/enroll`.
  public static let enrollAuthenticator = WireOperation<AuthenticatorRequest, AuthenticatorOffer>(
    "mfa.enroll-totp", .post, "/auth/mfa/enroll")
  /// `POST /auth/mfa/verify-enrollment`.
  public static let confirmAuthenticator = WireOperation<CodeRequest, MessageResponse>(
    "mfa.verify-enrollment", .post, "/auth/mfa/verify-enrollment")
  /// `POST /auth/mfa/disable`.
  public static let disableAuthenticator = WireOperation<CodeRequest, MessageResponse>(
    "mfa.disable", .post, "/auth/mfa/disable")
  /// `POST /auth/mfa/authenticators`.
  public static let offerAuthenticator = WireOperation<AppRequest, AuthenticatorAppOffer>(
    "mfa.offer-authenticator", .post, "/auth/mfa/authenticators")
  /// `POST /auth/mfa/authenticators/confirm`.
  public static let confirmOfferedAuthenticator = WireOperation<AppCodeRequest, AuthenticatorEntry>(
    "mfa.confirm-authenticator", .post, "/auth/mfa/authenticators/confirm")
  /// `GET /auth/mfa/authenticators`.
  public static let authenticators = WireOperation<EmptyRequest, AuthenticatorList>(
    "mfa.authenticators", .get, "/auth/mfa/authenticators")
  /// `POST /auth/mfa/authenticators/rename`.
  public static let renameAuthenticator = WireOperation<RenameAuthenticatorRequest, AuthenticatorEntry>(
    "mfa.rename-authenticator", .post, "/auth/mfa/authenticators/rename")
  /// `DELETE /auth/mfa/authenticators/{id}`.
  public static let removeAuthenticator = WireOperation<AuthenticatorReference, MessageResponse>(
    "mfa.remove-authenticator", .delete, "/auth/mfa/authenticators/{id}")
  /// `POST /auth/mfa/regenerate-backup-codes`.
  public static let regenerateBackupCodes = WireOperation<CodeRequest, BackupCodes>(
    "mfa.regenerate-backup-codes", .post, "/auth/mfa/regenerate-backup-codes")
  /// `POST /auth/mfa/email`.
  public static let offerEmail = WireOperation<EmailRequest, MessageResponse>(
    "mfa.offer-email", .post, "/auth/mfa/email")
  /// `POST /auth/mfa/email/verify`.
  public static let confirmEmail = WireOperation<EmailCodeRequest, MessageResponse>(
    "mfa.verify-email", .post, "/auth/mfa/email/verify")

  // MARK: Devices

  /// `GET /devices/{username}`.
  public static let devices = WireOperation<DevicesRequest, DeviceList>("devices.list", .get, "/devices/{username}")
  /// `GET /device/{deviceId}/status`.
  public static let deviceStatus = WireOperation<DeviceStatusRequest, DeviceStatus>(
    "device.status", .get, "/device/{deviceId}/status")

  // MARK: Enrolment

  /// `POST /mfa/link`.
  public static let linkDevice = WireOperation<EmptyRequest, LinkResponse>("mfa.link", .post, "/mfa/link")
  /// `POST /mfa/enroll`.
  public static let enroll = WireOperation<EnrollRequest, EnrollResponse>("mfa.enroll", .post, "/mfa/enroll")
  /// `POST /mfa/unenroll`.
  public static let unenroll = WireOperation<DeviceRequest, UnenrollResponse>("mfa.unenroll", .post, "/mfa/unenroll")
  /// `POST /mfa/upgrade`.
  public static let upgrade = WireOperation<UpgradeRequest, MethodResponse>("mfa.upgrade", .post, "/mfa/upgrade")
  /// `POST /mfa/downgrade`.
  public static let downgrade = WireOperation<DeviceRequest, MethodResponse>("mfa.downgrade", .post, "/mfa/downgrade")

  // MARK: Notices

  /// `GET /auth/notices`.
  public static let notices = WireOperation<NoticesRequest, NoticeList>("notices.list", .get, "/auth/notices")

  // MARK: Push

  /// `POST /auth/push/start`.
  public static let startPush = WireOperation<EmptyRequest, PushStarted>("push.start", .post, "/auth/push/start")
  /// `GET /auth/push`.
  public static let pendingPushes = WireOperation<EmptyRequest, PushList>("push.pending", .get, "/auth/push")
  /// `POST /auth/push/answer`.
  public static let answerPush = WireOperation<PushAnswerRequest, PushState>(
    "push.answer", .post, "/auth/push/answer")
  /// `GET /auth/push/{pushId}`.
  public static let pushState = WireOperation<PushStateRequest, PushState>("push.state", .get, "/auth/push/{pushId}")

  /// `POST /auth/push/address`.
  public static let registerPush = WireOperation<PushAddressRequest, PushAddressState>(
    "push.register", .post, "/auth/push/address")
  /// `DELETE /auth/push/address`.
  public static let unregisterPush = WireOperation<EmptyRequest, PushAddressState>(
    "push.unregister", .delete, "/auth/push/address")

  // MARK: Recovery

  /// `POST /mfa/recovery`.
  public static let startRecovery = WireOperation<RecoveryCodeRequest, RecoveryStarted>(
    "recovery.start", .post, "/mfa/recovery")
  /// `POST /mfa/recovery/status`.
  public static let recoveryStatus = WireOperation<RecoveryTokenRequest, RecoveryStatus>(
    "recovery.status", .post, "/mfa/recovery/status")
  /// `POST /mfa/recovery/stop`.
  public static let stopRecovery = WireOperation<RecoveryCodeRequest, RevokeResponse>(
    "recovery.stop", .post, "/mfa/recovery/stop")
  /// `GET /mfa/recovery`.
  public static let ownRecovery = WireOperation<EmptyRequest, OwnRecovery>("recovery.own", .get, "/mfa/recovery")
  /// `POST /mfa/recovery/cancel`.
  public static let cancelRecovery = WireOperation<EmptyRequest, RevokeResponse>(
    "recovery.cancel", .post, "/mfa/recovery/cancel")
  /// `GET /admin/recoveries`.
  public static let recoveries = WireOperation<AccountsRequest, RecoveryList>(
    "admin.recoveries", .get, "/admin/recoveries")
  /// `POST /admin/cancel-recovery`.
  public static let cancelAccountRecovery = WireOperation<AccountRequest, RevokeResponse>(
    "admin.cancel-recovery", .post, "/admin/cancel-recovery")

  // MARK: Second factor

  /// `GET /auth/mfa/status`.
  public static let status = WireOperation<EmptyRequest, MFAStatus>("mfa.status", .get, "/auth/mfa/status")
  /// `POST /auth/mfa/verify-login`.
  public static let verifyLogin = WireOperation<VerifyMFARequest, VerifyMFAResponse>(
    "mfa.verify-login", .post, "/auth/mfa/verify-login")
  /// `POST /auth/mfa/resend-email-otp`.
  public static let resendEmailOTP = WireOperation<EmptyRequest, MessageResponse>(
    "mfa.resend-email-otp", .post, "/auth/mfa/resend-email-otp")
  /// `GET /auth/mfa/trusted-devices`.
  public static let trustedDevices = WireOperation<EmptyRequest, TrustedDeviceList>(
    "mfa.trusted-devices", .get, "/auth/mfa/trusted-devices")
  /// `DELETE /auth/mfa/trusted-devices/{id}`.
  public static let revokeTrustedDevice = WireOperation<TrustedDeviceRequest, MessageResponse>(
    "mfa.revoke-trusted-device", .delete, "/auth/mfa/trusted-devices/{id}")

  // MARK: Security keys

  /// `POST /auth/webauthn/registration/options`.
  public static let registrationOptions = WireOperation<EmptyRequest, CredentialCreationOptions>(
    "webauthn.registration-options", .post, "/auth/webauthn/registration/options")
  /// `POST /auth/webauthn/registration`.
  public static let registerSecurityKey = WireOperation<RegistrationRequest, SecurityKeyEntry>(
    "webauthn.register", .post, "/auth/webauthn/registration")
  /// `GET /auth/webauthn/keys`.
  public static let securityKeys = WireOperation<EmptyRequest, SecurityKeyList>(
    "webauthn.keys", .get, "/auth/webauthn/keys")
  /// `POST /auth/webauthn/keys/rename`.
  public static let renameSecurityKey = WireOperation<RenameKeyRequest, SecurityKeyEntry>(
    "webauthn.rename-key", .post, "/auth/webauthn/keys/rename")
  /// `DELETE /auth/webauthn/keys/{id}`.
  public static let removeSecurityKey = WireOperation<SecurityKeyRequest, MessageResponse>(
    "webauthn.remove-key", .delete, "/auth/webauthn/keys/{id}")
  /// `POST /auth/webauthn/authentication/options`.
  public static let authenticationOptions = WireOperation<EmptyRequest, CredentialRequestOptions>(
    "webauthn.authentication-options", .post, "/auth/webauthn/authentication/options")
  /// `POST /auth/webauthn/authentication`.
  public static let verifyLoginWithSecurityKey = WireOperation<AuthenticationRequest, VerifyMFAResponse>(
    "webauthn.verify-login", .post, "/auth/webauthn/authentication")

  // MARK: Sessions

  /// `POST /auth/token/refresh`.
  public static let refreshToken = WireOperation<RefreshRequest, TokenResponse>(
    "auth.refresh", .post, "/auth/token/refresh")
  /// `POST /auth/token/revoke`.
  public static let revokeToken = WireOperation<RevokeRequest, RevokeResponse>(
    "auth.revoke", .post, "/auth/token/revoke")
}
