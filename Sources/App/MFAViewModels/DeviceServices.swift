public import MFAClient

/// What the view models of one app share: the device's security, the server, and what the app remembers.
///
/// Create one for each app: changes of the enrolment are carried out one after another in it.
public struct DeviceServices: Sendable {
  /// Makes and uses keys.
  public let keychain: any KeychainService
  /// Evaluates prompts inside the app.
  public let biometrics: any BiometricService
  /// Uses security keys; `nil` for an app without them.
  public let securityKeys: (any SecurityKeyService)?
  /// Performs the server's operations.
  public let backend: any MFABackend
  /// Keeps the record of the enrolment.
  public let storage: any MFAStorageService
  /// Keeps the session.
  public let sessions: any SecretStorage<MFASession>
  /// Keeps what replaces the second factor at the next sign-in.
  public let trust: any SecretStorage<DeviceTrust>
  /// Performs operations in the session of the user.
  public let session: SessionService
  /// Changes the enrolment.
  public let enrolment: DeviceEnrolment
  /// The app.
  public let app: AppDescription

  /// Brings the services of an app together.
  public init(
    keychain: any KeychainService, biometrics: any BiometricService,
    securityKeys: (any SecurityKeyService)? = nil, backend: any MFABackend,
    storage: any MFAStorageService, sessions: any SecretStorage<MFASession> = MemorySecretStorage(),
    trust: any SecretStorage<DeviceTrust> = MemorySecretStorage(), app: AppDescription
  ) {
    self.keychain = keychain
    self.biometrics = biometrics
    self.securityKeys = securityKeys
    self.backend = backend
    self.storage = storage
    self.sessions = sessions
    self.trust = trust
    self.app = app
    session = SessionService(backend: backend, storage: sessions)
    enrolment = DeviceEnrolment(
      keychain: keychain, storage: storage, session: session, bundleID: app.bundleID, deviceModel: app.deviceModel)
  }
}
