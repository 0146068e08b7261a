public import ByteCoding
internal import Crypto
internal import Foundation
public import MFADomain

/// Issues and verifies access tokens: ES256 JWTs that can be verified with the keys in `jwks`.
public struct AccessTokens: AccessTokenIssuer {
  /// The lifetime of a token.
  public let lifetime: Duration
  private let issuer: String
  private let audience: String
  /// The newest key, and the encoded header of its tokens.
  private let signing: (key: P256.Signing.PrivateKey, header: String)
  private let verifying: [String: P256.Signing.PublicKey]
  /// The public keys as a JWKS (RFC 7517).
  public let jwks: String

  /// Derives the keys from the secrets in `vault`. The newest key signs; all of them verify.
  ///
  /// - Throws: `Vault.Unopenable` if the vault has no usable secret.
  public init(vault: Vault, issuer: String, audience: String, lifetime: Duration = .seconds(900)) async throws {
    let keys = try vault.tokenSecrets.map { try Self.key(from: $0.secret) }
    guard let newest = keys.last else { throw Vault.Unopenable(reason: "no key for access tokens") }
    let header = JSONText.object(["alg": "ES256", "typ": "at+jwt", "kid": Self.thumbprint(of: newest.publicKey)])
    signing = (newest, Base64URL.encode(Array(header.utf8)))
    verifying = Dictionary(
      keys.map { (Self.thumbprint(of: $0.publicKey), $0.publicKey) }, uniquingKeysWith: { first, _ in first })
    jwks = "{\"keys\":[" + keys.map { Self.jwk($0.publicKey) }.joined(separator: ",") + "]}"
    self.issuer = issuer
    self.audience = audience
    self.lifetime = lifetime
  }

  /// Signs an access token for `session`, issued at `now`: the claims of RFC 9068, with the authentication claims of
  /// OpenID Connect and the attested key as confirmation (RFC 7800).
  public func issue(for session: LoginSession, of user: User, at now: Timestamp) async throws -> String {
    var claims: [UInt8] = []
    claims.reserveCapacity(512)
    func text(_ name: StaticString, _ value: String) {
      JSONText.append(name, after: "", to: &claims)
      claims.append(UInt8(ascii: ":"))
      JSONText.append(value, to: &claims)
      claims.append(UInt8(ascii: ","))
    }
    func seconds(_ name: StaticString, _ value: Timestamp) {
      JSONText.append(name, after: "", to: &claims)
      claims.append(UInt8(ascii: ":"))
      JSONText.append(value.seconds, to: &claims)
      claims.append(UInt8(ascii: ","))
    }
    claims.append(UInt8(ascii: "{"))
    text("iss", issuer)
    text("aud", audience)
    text("sub", user.id.text)
    text("sid", session.id.text)
    text("jti", Entropy.system.uuid().text)
    seconds("iat", now)
    seconds("exp", now.advanced(by: lifetime))
    seconds("auth_time", session.authenticatedAt)
    JSONText.append("amr", after: "", to: &claims)
    claims += ":[".utf8
    for (index, method) in session.methods.enumerated() {
      if index > 0 { claims.append(UInt8(ascii: ",")) }
      JSONText.append(method, to: &claims)
    }
    claims += "],".utf8
    text("acr", session.acr)
    text("scope", session.scope.rawValue)
    if case .attestedKey(let hash) = session.binding {
      claims += "\"cnf\":{".utf8
      text("attest_key", hash)
      claims.removeLast()
      claims += "},".utf8
    }
    text("username", user.username.text)
    claims.removeLast()
    claims.append(UInt8(ascii: "}"))
    let signed = signing.header + "." + Base64URL.encode(claims)
    return signed + "." + Base64URL.encode(Array(try signing.key.signature(for: Data(signed.utf8)).rawRepresentation))
  }

  /// The session that `token` proves at `now`; `nil` if the token is not valid or has expired.
  public func proof(in token: String, at now: Timestamp) async -> SessionProof? {
    guard let parts = ES256Token(token), let key = parts.keyID(ofType: "at+jwt").flatMap({ verifying[$0] }),
      let payload = parts.claims(signedBy: key), let claims = ProofClaims(payload), claims.iss == issuer,
      claims.aud == audience, now.seconds < claims.exp, let session = UUID(text: claims.sid),
      let user = UUID(text: claims.sub)
    else { return nil }
    return SessionProof(sessionID: session, userID: user, expiresAt: Timestamp(seconds: claims.exp))
  }

  /// Derives a P-256 key from 32 secret bytes: the first of their HMACs that is a valid scalar.
  private static func key(from secret: [UInt8]) throws -> P256.Signing.PrivateKey {
    for attempt in 0..<UInt8(16) {
      let scalar = HMAC<SHA256>.authenticationCode(
        for: [attempt], using: SymmetricKey(data: secret))
      if let key = try? P256.Signing.PrivateKey(rawRepresentation: Data(scalar)) { return key }
    }
    throw Vault.Unopenable(reason: "no key for access tokens can be derived")
  }

  /// The JWK thumbprint (RFC 7638).
  private static func thumbprint(of key: P256.Signing.PublicKey) -> String {
    let (x, y) = coordinates(of: key)
    return Base64URL.encode(
      SHA256.hash(data: Data("{\"crv\":\"P-256\",\"kty\":\"EC\",\"x\":\"\(x)\",\"y\":\"\(y)\"}".utf8)).map { $0 })
  }

  private static func jwk(_ key: P256.Signing.PublicKey) -> String {
    let (x, y) = coordinates(of: key)
    return JSONText.object([
      "kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": thumbprint(of: key), "x": x, "y": y,
    ])
  }

  private static func coordinates(of key: P256.Signing.PublicKey) -> (x: String, y: String) {
    let raw = Array(key.rawRepresentation)
    return (Base64URL.encode(raw.prefix(32)), Base64URL.encode(raw.suffix(32)))
  }
}

/// The claims that a token proves a session by.
private struct ProofClaims {
  private(set) var (iss, aud, sid, sub) = ("", "", "", "")
  private(set) var exp: Int64 = 0

  /// Reads the claims; `nil` if one is missing, malformed or there twice.
  init?(_ payload: [UInt8]) {
    guard var reader = ClaimReader(payload) else { return nil }
    var missing: Set = ["iss", "aud", "sid", "sub", "exp"]
    do {
      while let name = try reader.next() {
        missing.remove(name)
        switch name {
        case "iss": iss = try reader.text()
        case "aud": aud = try reader.text()
        case "sid": sid = try reader.text()
        case "sub": sub = try reader.text()
        case "exp": exp = Int64(max(-1e15, min(1e15, try reader.number())))
        default: try reader.skip()
        }
      }
    } catch {
      return nil
    }
    guard missing.isEmpty else { return nil }
  }
}

extension LoginSession {
  /// The authentication assurance level. `aal2` requires two proved factors, or a key that the operator guarantees to
  /// be in hardware with user unlock (`hwk`). Every other single factor is `aal1`, and so is every debug build.
  fileprivate var acr: String {
    binding != .debugBuild && scope == .full && (methods.contains("hwk") || methods.count > 1) ? "aal2" : "aal1"
  }
}
