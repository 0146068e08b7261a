internal import AppAttest
public import ByteCoding
public import Cryptography

/// A private key of a developer account with DeviceCheck enabled. Apple's data service accepts the requests that it signs.
public struct DeveloperKey: Sendable {
  /// The names of a key: the team, and the key's id in the developer account.
  public struct Name: Sendable, Hashable {
    /// The team id, which is the `iss` of the authorization.
    public let teamID: String
    /// The id of the key, which is the `kid` of the authorization.
    public let keyID: String
  }

  public let name: Name
  private let key: P256PrivateKey

  public init(teamID: String, keyID: String, key: P256PrivateKey) {
    name = Name(teamID: teamID, keyID: keyID)
    self.key = key
  }

  /// Returns the value of `Authorization` for requests from `now` on: a JWT with ES256, without `Bearer`. Apple accepts
  /// it for an hour.
  public func authorization(at now: Timestamp) throws(CryptographyError) -> String {
    let header = #"{"alg":"ES256","kid":\#(JSONText.quote(name.keyID))}"#
    let claims = #"{"iss":\#(JSONText.quote(name.teamID)),"iat":\#(now.seconds)}"#
    let signed = "\(Base64URL.encode(Array(header.utf8))).\(Base64URL.encode(Array(claims.utf8)))"
    return "\(signed).\(Base64URL.encode(try key.es256Signature(for: Array(signed.utf8))))"
  }
}

/// The authorization in use for each developer key, so that not every request needs a signature.
struct Authorizations {
  /// Half of the time for which Apple accepts one: a clock may be off, and a request may wait.
  static let life = Duration.seconds(30 * 60)

  private var made: [DeveloperKey.Name: (text: String, at: Timestamp)] = [:]

  /// Returns the authorization of `key`, a new one if the last one is older than `life` or from a later instant.
  mutating func current(of key: DeveloperKey, at now: Timestamp) throws(CryptographyError) -> String {
    if let last = made[key.name], now >= last.at, now.since(last.at) < Self.life { return last.text }
    let text = try key.authorization(at: now)
    made[key.name] = (text, now)
    return text
  }

  /// Forgets the authorization that Apple refused.
  mutating func forget(_ name: DeveloperKey.Name) { made[name] = nil }
}
