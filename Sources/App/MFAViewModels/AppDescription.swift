/// The app that the view models work for.
public struct AppDescription: Sendable {
  /// The bundle identifier, from which the tags of keys are made.
  public let bundleID: String
  /// The account that the screens begin with; the user may enter another one.
  public let username: String
  /// The number that receives codes, in E.164; `nil` for none.
  public let phoneNumber: String?
  /// Apple's name of the model, for lists of devices.
  public let deviceModel: String
  /// The version of the app, for the settings.
  public let version: String
  /// Opens the Settings app.
  public let openSettings: @Sendable () -> Void

  /// Describes an app.
  public init(
    bundleID: String, username: String, phoneNumber: String? = nil, deviceModel: String, version: String = "1.0",
    openSettings: @escaping @Sendable () -> Void = {}
  ) {
    self.bundleID = bundleID
    self.username = username
    self.phoneNumber = phoneNumber
    self.deviceModel = deviceModel
    self.version = version
    self.openSettings = openSettings
  }
}
