public import ByteCoding
internal import Crypto
internal import Foundation
internal import JWTKit
public import MFADomain

/// Makes and reads the access tokens that clients carry: ES256 JWTs, verifiable with the keys of `jwks`.
public struct AccessTokens: AccessTokenIssuer {
  public let lifetime: Duration
  private let issuer: String
  private let audience: String
  private let signingKeyID: String
  private let collection: JWTKeyCollection
  /// The public keys, as RFC 7517 writes them.
  public let jwks: String

  /// - Parameter vault: holds what the keys are made of; the newest signs, and all of them verify.
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

  /// What `token` proves at `now`; `nil` if it is not one of ours, or has expired.
  public func proof(in token: String, at now: Timestamp) async -> SessionProof? {
    guard token.utf8.count <= 4096, CompactToken.isCanonical(token),
      let claims = try? await collection.verify(token, as: AccessClaims.self),
      claims.iss == issuer, claims.aud == audience, now.seconds < claims.exp,
      let session = UUID(uuidString: claims.sid),
      let user = UUID(uuidString: claims.sub)
    else { return nil }
    return SessionProof(sessionID: session, userID: user, expiresAt: Timestamp(seconds: claims.exp))
  }

  /// The P-256 key that 32 secret bytes stand for: the first of their hashes that is a scalar of the curve.
  private static func key(from secret: [UInt8]) throws -> P256.Signing.PrivateKey {
    for attempt in 0..<UInt8(16) {
      let scalar = HMAC<SHA256>.authenticationCode(
        for: [attempt], using: SymmetricKey(data: secret))
      if let key = try? P256.Signing.PrivateKey(rawRepresentation: Data(scalar)) { return key }
    }
    throw Vault.Unopenable(reason: "no key for access tokens can be made")
  }

  /// RFC 7638.
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

/// RFC 9068, with the authentication's claims of OpenID Connect and the attested key as confirmation (RFC 7800).
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

  // `proof(in:at:)` checks them against the injected clock.
  func verify(using algorithm: some JWTAlgorithm) async throws {}
}

extension LoginSession {
  /// `aal2` once two factors are proved, or a key of which the operator vouches that hardware keeps it and the user
  /// unlocks it (`hwk`). Any other key alone is `aal1`, as is a code by SMS alone and all that a debug build proves.
  fileprivate var acr: String {
    binding != .debugBuild && scope == .full && (methods.contains("hwk") || methods.count > 1) ? "aal2" : "aal1"
  }
}
