public import ByteCoding
import Crypto
import Foundation
public import JWTKit
import Locking
public import MFADomain
import MFAService
import OIDCClient

/// An identity provider that signs ID tokens, and the verifier that a backend uses for it.
public final class TestProvider: Sendable {
  public static let clientID = "app"

  public let issuer: String
  private let key = ES256PrivateKey()
  private let keyID = "provider-1"
  private let available = LockedValue(true)

  public init(issuer: String = "https://login.example.com") { self.issuer = issuer }

  /// The public keys, a JWKS.
  public var jwks: String {
    let parameters = key.parameters
    return """
      {"keys":[{"kty":"EC","crv":"P-256","alg":"ES256","use":"sig","kid":"\(keyID)","x":"\(parameters?.x ?? "")",\
      "y":"\(parameters?.y ?? "")"}]}
      """
  }

  /// Whether the keys can be fetched.
  public var isAvailable: Bool {
    get { available.withLock { $0 } }
    set { available.withLock { $0 = newValue } }
  }

  public struct Unavailable: Error {}

  /// The verifier for the client ids `app` and `app-android`, which trusts the audience `project`.
  public var tokens: any IdentityTokenVerifier {
    ProviderTokens(
      issuer: issuer, audiences: [Self.clientID, "app-android"], trustedAudiences: ["project"]
    ) { [self] _ in
      guard isAvailable else { throw Unavailable() }
      return try ProviderKeys(json: Array(jwks.utf8))
    }
  }

  /// Returns an ID token for `challenge`, which is in base64. `change` edits its claims before they are signed.
  public func token(
    for challenge: String, subject: String = "ada", at now: Timestamp, signedBy other: TestProvider? = nil,
    _ change: (inout ProviderClaims) -> Void = { _ in }
  ) async throws -> String {
    let bytes = Array(Data(base64Encoded: challenge) ?? Data())
    var claims = ProviderClaims(
      iss: issuer, sub: subject, aud: [Self.clientID], nonce: Base64URL.encode(Array(SHA256.hash(data: bytes))),
      iat: now.seconds, exp: now.seconds + 300)
    change(&claims)
    let keys = JWTKeyCollection()
    await keys.add(ecdsa: (other ?? self).key, kid: JWKIdentifier(string: keyID))
    return try await keys.sign(claims, kid: JWKIdentifier(string: keyID))
  }
}

/// The claims of an ID token.
public struct ProviderClaims: JWTPayload {
  public var iss: String?
  public var sub: String?
  public var aud: [String]
  public var azp: String?
  public var nonce: String?
  public var iat: Int64?
  public var exp: Int64?

  public func verify(using algorithm: some JWTAlgorithm) async throws {}
}

extension AppClient {
  /// Asks for a challenge, and returns the answer of `provider` to it: the fields `challengeId` and `idToken`.
  public func identity(
    from provider: TestProvider, subject: String = "ada", at now: Timestamp, signedBy other: TestProvider? = nil,
    _ change: (inout ProviderClaims) -> Void = { _ in }
  ) async throws -> JSONValue {
    let challenge = try await call("auth.oidc-challenge")
    let token = try await provider.token(
      for: challenge["challenge"]?.text ?? "", subject: subject, at: now, signedBy: other, change)
    return ["challengeId": challenge["challengeId"] ?? nil, "idToken": .string(token)]
  }
}
