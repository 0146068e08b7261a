public import MFAWire

/// The session of the signed-in user. Its tokens are secrets: neither its description nor a dump shows them.
public struct MFASession: Sendable, Hashable, Codable {
  /// The account.
  public var username: String
  /// The access token: a JWT.
  public var accessToken: String
  /// The refresh token. It can be used once.
  public var refreshToken: String
  /// What the session permits: `mfa`, `mfa_setup` or `full`.
  public var scope: String

  /// The session that `response` begins for `username`.
  public init(_ response: TokenResponse, of username: String) {
    self.username = username
    accessToken = response.token
    refreshToken = response.refreshToken
    scope = response.scope
  }
}

extension MFASession: CustomStringConvertible, CustomReflectable {
  public var description: String { "session of \(username)" }
  public var customMirror: Mirror { Mirror(self, children: ["username": username, "scope": scope]) }
}
