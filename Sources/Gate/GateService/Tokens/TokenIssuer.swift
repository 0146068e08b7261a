internal import AppAttest
public import AttestGate
internal import ByteCoding
internal import Cryptography

/// Signs access tokens for services that the gate does not relay to.
///
/// A token is a JWT (RFC 9068) that is bound to a key of the client (RFC 9449 section 6.1). It differs from an identity
/// assertion in two ways, so that neither is accepted as the other: its type is `at+jwt`, and its audience is none that
/// upstreams have.
public struct TokenIssuer: Sendable {
  /// The longest validity of a token. An identity signing key is published for at least as long after its last use.
  public static let longestLife = Duration.seconds(300)

  /// The validity of a token.
  public let life: Duration
  private let audiences: Set<String>
  private let keys: IdentityKeys
  /// The claims that are the same in every token, from the opening brace.
  private let prefix: [UInt8]

  /// - Parameters:
  ///   - issuer: The `iss` claim, the name of the gate.
  ///   - audiences: The audiences that clients may ask for.
  ///   - life: At most `longestLife`, which is used instead of a longer one.
  ///   - keys: The identity signing keys.
  public init(issuer: String, audiences: Set<String>, life: Duration, keys: IdentityKeys) {
    self.audiences = audiences
    self.life = min(life, Self.longestLife)
    self.keys = keys
    prefix = Array("{\"iss\":\(JSONText.quote(issuer))".utf8)
  }

  func serves(_ audience: String) -> Bool { audiences.contains { $0.hasSameBytes(as: audience) } }

  /// Loads the signing keys if they are not loaded. Otherwise does no work.
  func prepare() async throws(StoreError) {
    if !keys.isReady { try await keys.prepare() }
  }

  /// Returns a token for `device`, bound to `key`.
  ///
  /// - Throws: `.failed` if no keys are loaded or if OpenSSL cannot sign.
  func token(
    for device: DevicePrincipal, method: String, audience: String, boundTo key: DPoPKey, at now: Timestamp
  ) throws(StoreError) -> IssuedToken {
    guard let signingKey = keys.signing(at: now) else { throw .failed(reason: "no identity keys") }
    let id = Base64URL.encode(SecureRandom.bytes(16))
    var claims = ClaimWriter(prefix: prefix)
    claims.text("aud", audience)
    claims.text("sub", device.keyHash.text)
    // RFC 9068 requires it. The client is the app, and the subject is its installation.
    claims.text("client_id", device.app.text)
    claims.text("jti", id)
    claims.number("iat", now.seconds)
    claims.number("exp", now.seconds + life.components.seconds)
    claims.text("method", method)
    claims.describe(device)
    claims.object("cnf", "jkt", key.thumbprint)
    return IssuedToken(id: id, text: try signingKey.token(ofType: "at+jwt", claims.ended()))
  }
}

/// A signed token.
struct IssuedToken: Sendable, Hashable {
  /// The claim `jti`, by which the log names the token.
  let id: String
  /// The token itself, which is a secret.
  let text: String
}
