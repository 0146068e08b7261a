public import ByteCoding
internal import Crypto
internal import Foundation
internal import JWTKit
public import MFADomain

/// Issues and verifies access tokens: ES256 JWTs that can be verified with the keys in `jwks`.
public struct AccessTokens: AccessTokenIssuer {
  /// The lifetime of a token.
  public let lifetime: Duration
  private let issuer: String
  private let audience: String
  private let signingKeyID: String
  private let collection: JWTKeyCollection
  /// The public keys as a JWKS (RFC 7517).
  public let jwks: String

  /// Derives the keys from the secrets in `vault`. The newest key signs; all of them verify.
  ///
  /// - Throws: `Vault.Unopenable` if the vault has no usable secret.
  public init(vault: Vault, issuer: String, audience: String, lifetime: Duration = .seconds(900)) async throws {
    let keys = try vault.tokenSecrets.map { try Self.key(from: $0.secret) }
    guard let newest = keys.last else { throw Vault.Unopenable(reason: "no key for access tokens") }
    collection = JWTKeyCollection()
    for key in keys {
      let signing = try ES256PrivateKey(backing: key)
      await collection.add(ecdsa: signing, kid: JWKIdentifier(string: Self.thumbprint(of: key.publicKey)))
    }
    signingKeyID = Self.thumbprint(of: newest.publicKey)
    jwks = "{\"keys\":[" + keys.map { Self.jwk($0.publicKey) }.joined(separator: ",") + "]}"
    self.issuer = issuer
    self.audience = audience
    self.lifetime = lifetime
  }

  /// Signs an access token for `session`, issued at `now`.
  public func issue(for session: LoginSession, of user: User, at now: Timestamp) async throws -> String {
    let confirmation: AccessClaims.Confirmation? =
      if case .attestedKey(let hash) = session.binding { .init(attestedKey: hash) } else { nil }
    return try await collection.sign(
      AccessClaims(
        iss: issuer, aud: audience, sub: user.id.uuidString.lowercased(), sid: session.id.uuidString.lowercased(),
        jti: Entropy.system.uuid().uuidString.lowercased(), iat: now.seconds,
        exp: now.advanced(by: lifetime).seconds, auth_time: session.authenticatedAt.seconds, amr: session.methods,
        acr: session.acr, scope: session.scope.rawValue, username: user.username.text, cnf: confirmation),
      kid: JWKIdentifier(string: signingKeyID), header: ["typ": "at+jwt"])
  }

  /// The session that `token` proves at `now`; `nil` if the token is not valid or has expired.
  public func proof(in token: String, at now: Timestamp) async -> SessionProof? {
    guard token.utf8.count <= 4096, CompactToken.isCanonical(token),
      let claims = try? await collection.verify(token, as: AccessClaims.self),
      claims.iss == issuer, claims.aud == audience, now.seconds < claims.exp,
      let session = UUID(uuidString: claims.sid),
      let user = UUID(uuidString: claims.sub)
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

/// The claims of RFC 9068, with the authentication claims of OpenID Connect and the attested key as confirmation (RFC
/// 7800).
private struct AccessClaims: JWTPayload {
  struct Confirmation: Codable, Sendable {
    let attestedKey: String

    enum CodingKeys: String, CodingKey { case attestedKey = "attest_key" }
  }

  let iss: String
  let aud: String
  let sub: String
  let sid: String
  let jti: String
  let iat: Int64
  let exp: Int64
  let auth_time: Int64
  let amr: [String]
  let acr: String
  let scope: String
  let username: String
  let cnf: Confirmation?

  // `proof(in:at:)` checks the claims against the injected clock.
  func verify(using algorithm: some JWTAlgorithm) async throws {}
}

extension LoginSession {
  /// The authentication assurance level. `aal2` requires two proved factors, or a key that the operator guarantees to
  /// be in hardware with user unlock (`hwk`). Every other single factor is `aal1`, and so is every debug build.
  fileprivate var acr: String {
    binding != .debugBuild && scope == .full && (methods.contains("hwk") || methods.count > 1) ? "aal2" : "aal1"
  }
}
