internal import ByteCoding
internal import Crypto
internal import Foundation
internal import Locking

/// A key of the developer account for APNs, and the provider tokens that it signs.
///
/// Apple refuses tokens that are older than an hour, and connections whose token changes more often than every twenty
/// minutes (`TooManyProviderTokenUpdates`). So all instances of one key share its token: a reload makes another instance.
public final class APNSKey: Sendable {
  /// The age from which a token is replaced.
  static let renewalAge = Duration.seconds(2700)
  /// The age before which a token is never replaced.
  static let leastAge = Duration.seconds(1200)

  private struct Token {
    let text: String
    let issuedAt: Timestamp
  }

  private struct Identity: Hashable {
    let publicKey: Data
    let keyID: String
    let teamID: String
  }

  /// The last token of a key.
  private final class SharedToken: Sendable {
    let value = LockedValue<Token?>(nil)
  }

  /// The tokens of the keys that this process has used. An operator has few.
  private static let tokens = LockedValue<[Identity: SharedToken]>([:])

  private let key: P256.Signing.PrivateKey
  private let keyID: String
  private let teamID: String
  private let token: SharedToken

  /// Reads the key.
  ///
  /// - Parameter pem: the content of the file `AuthKey_….p8`: a P-256 key as PKCS #8.
  public init(pem: String, keyID: String, teamID: String) throws(PushKeyFault) {
    guard let key = try? P256.Signing.PrivateKey(pemRepresentation: pem), Self.namesCurve(pem) else {
      throw PushKeyFault("it is not a P-256 private key as PEM, as the file AuthKey_….p8 of the developer account is")
    }
    self.key = key
    self.keyID = keyID
    self.teamID = teamID
    let identity = Identity(publicKey: key.publicKey.rawRepresentation, keyID: keyID, teamID: teamID)
    token = Self.tokens.withLock { tokens in
      if let known = tokens[identity] { return known }
      let new = SharedToken()
      tokens[identity] = new
      return new
    }
  }

  /// Whether the PKCS #8 document names the curve P-256: the library accepts the key of another curve of this size.
  private static func namesCurve(_ pem: String) -> Bool {
    let lines = pem.split(whereSeparator: \.isNewline).filter { !$0.hasPrefix("-----") }
    // prime256v1, 1.2.840.10045.3.1.7 (RFC 5480 section 2.1.1.1).
    let curve = Data([0x06, 0x08, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x03, 0x01, 0x07])
    return Data(base64Encoded: lines.joined(), options: .ignoreUnknownCharacters)?.range(of: curve) != nil
  }

  /// Returns the token for a request at `now`.
  func token(at now: Timestamp) throws(PushFailure) -> String {
    try token.value.withLock { token throws(PushFailure) in
      if let token, (.zero..<Self.renewalAge).contains(now.since(token.issuedAt)) { return token.text }
      return try sign(at: now, in: &token)
    }
  }

  /// Returns a newer token than `refused`, which Apple says has expired; `nil` if the newest one is too young to be
  /// replaced, which means that the clock of this machine or of Apple is wrong.
  func token(replacing refused: String, at now: Timestamp) throws(PushFailure) -> String? {
    try token.value.withLock { token throws(PushFailure) in
      guard let known = token else { return try sign(at: now, in: &token) }
      // Another request has replaced it in the meantime.
      if known.text != refused { return known.text }
      guard !(.zero..<Self.leastAge).contains(now.since(known.issuedAt)) else { return nil }
      return try sign(at: now, in: &token)
    }
  }

  private func sign(at now: Timestamp, in token: inout Token?) throws(PushFailure) -> String {
    let claims = "{\"iss\":\(JSONText.quote(teamID)),\"iat\":\(now.seconds)}"
    do {
      let text = try ProviderToken.signed(
        header: JSONText.object(["alg": "ES256", "kid": keyID]), claims: claims, by: key)
      token = Token(text: text, issuedAt: now)
      return text
    } catch {
      throw PushFailure(.configuration, "the key cannot sign: \(error)")
    }
  }
}
