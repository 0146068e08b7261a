/// The trust of a server in this device: a token that replaces the second factor of one account. It is a secret: neither
/// its description nor a dump shows it.
public struct DeviceTrust: Sendable, Hashable, Codable {
  /// The account.
  public var username: String
  /// The token, which the server made when the user asked it to remember this device.
  public var token: String

  /// The trust in this device, for the account `username`.
  public init(username: String, token: String) {
    self.username = username
    self.token = token
  }
}

extension DeviceTrust: CustomStringConvertible, CustomReflectable {
  public var description: String { "trust of \(username)" }
  public var customMirror: Mirror { Mirror(self, children: ["username": username]) }
}
