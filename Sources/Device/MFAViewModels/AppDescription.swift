public import MFAClient

/// The app and the account that a view model works for.
public struct AppDescription: Sendable {
  /// The bundle identifier, from which the tags of keys are made.
  public let bundleID: String
  /// The account.
  public let username: String
  /// The number that receives codes, in E.164; `nil` for none.
  public let phoneNumber: String?
  /// Apple's name of the model, for lists of devices.
  public let deviceModel: String
  /// Opens the Settings app.
  public let openSettings: @Sendable () -> Void

  /// Describes an app.
  public init(
    bundleID: String, username: String, phoneNumber: String? = nil, deviceModel: String,
    openSettings: @escaping @Sendable () -> Void = {}
  ) {
    self.bundleID = bundleID
    self.username = username
    self.phoneNumber = phoneNumber
    self.deviceModel = deviceModel
    self.openSettings = openSettings
  }
}

/// What the view models of one app share: the device's security, the server and the app's record.
public struct DeviceServices: Sendable {
  /// Makes and uses keys.
  public var keychain: any KeychainService
  /// Evaluates prompts inside the app.
  public var biometrics: any BiometricService
  /// Performs the server's operations.
  public var backend: any MFABackend
  /// Keeps the record of the enrolment.
  public var storage: any MFAStorageService

  /// Brings the services of an app together.
  public init(
    keychain: any KeychainService, biometrics: any BiometricService, backend: any MFABackend,
    storage: any MFAStorageService
  ) {
    self.keychain = keychain
    self.biometrics = biometrics
    self.backend = backend
    self.storage = storage
  }
}
