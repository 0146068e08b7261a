public import ByteCoding
import Crypto
import Foundation
public import JWTKit
import MFADomain

/// Signs identities like the gate.
public final class TestGate: Sendable {
  public static let issuer = "https://gate.test"
  public static let audience = "mfa"

  private let key = ES256PrivateKey()
  private let keyID = "gate-1"
  private let clock: WallClock
  /// The path of the file with the public keys, a JWKS.
  public let keysFile: String

  public init(clock: WallClock) throws {
    self.clock = clock
    keysFile = NSTemporaryDirectory() + "gate-\(UUID().uuidString).jwks"
    // JWTKit writes them in plain base64 with padding, the gate as RFC 7518 asks.
    guard let parameters = key.parameters, let x = Base64.decode(parameters.x).map(Base64URL.encode),
      let y = Base64.decode(parameters.y).map(Base64URL.encode)
    else { throw NoParameters() }
    try Data(
      """
      {"keys":[{"kty":"EC","crv":"P-256","alg":"ES256","use":"sig","kid":"\(keyID)","x":"\(x)",\
      "y":"\(y)"}]}
      """.utf8
    ).write(to: URL(filePath: keysFile))
  }

  /// The private key for programs that sign identities themselves.
  public var privateKeyPEM: String { key.pemRepresentation }

  deinit { try? FileManager.default.removeItem(atPath: keysFile) }

  struct NoParameters: Error {}

  /// Returns an identity for one request of `app`. `change` edits its claims before they are signed.
  ///
  /// - Parameter request: the method and the target that the identity names; `nil` for an identity of an older gate,
  ///   which names none.
  public func assertion(
    for app: AppInstance, of request: (method: String, target: String)? = nil, signedBy other: TestGate? = nil,
    ofType type: String = "JWT", _ change: (inout GateClaims) -> Void = { _ in }
  ) async throws -> String {
    var claims = GateClaims(app: app, at: clock.now().seconds)
    if let request {
      claims.htm = request.method
      claims.target = Base64URL.encode(SHA256.hash(data: Data(request.target.utf8)).map { $0 })
    }
    change(&claims)
    let keys = JWTKeyCollection()
    await keys.add(ecdsa: (other ?? self).key, kid: JWKIdentifier(string: keyID))
    var header = JWTHeader()
    header.typ = type
    return try await keys.sign(claims, kid: JWKIdentifier(string: keyID), header: header)
  }
}

/// One installation of an app, as the gate identifies it.
public struct AppInstance: Sendable, Hashable {
  public let keyHash: String
  public let method: String
  public var environment: String?
  public var address = "192.0.2.1"
  /// The gate's name of the app.
  public var name = "AAABBBCCC1.com.example.app"

  /// Returns an installation with its own attested key.
  public static func genuine(method: String = "app-attest") -> AppInstance {
    AppInstance(
      keyHash: Hex.encode(SHA256.hash(data: Data(UUID().uuidString.utf8)).map { $0 }), method: method,
      environment: "production")
  }

  /// A debug build. All debug builds share a certificate.
  public static let debugBuild = AppInstance(keyHash: "debug-certificate", method: "mtls", environment: "debug")
}

public struct GateClaims: JWTPayload {
  public var iss = TestGate.issuer
  public var aud = TestGate.audience
  /// The key of an attested device. A debug build has its certificate in `cnf` instead, as with the gate.
  public var sub: String?
  public var cnf: [String: String]?
  public var jti = UUID().uuidString
  public var iat: Int64
  public var exp: Int64
  public var app: String
  public var env: String?
  public var method: String
  public var htm: String?
  public var target: String?
  public var counter = 7
  public var sid = "session-1"
  public var client_ip: String

  init(app: AppInstance, at now: Int64) {
    self.app = app.name
    if app.method == "mtls" { cnf = ["x5t#S256": app.keyHash] } else { sub = app.keyHash }
    iat = now
    exp = now + 60
    env = app.environment
    method = app.method
    client_ip = app.address
  }

  public func verify(using algorithm: some JWTAlgorithm) async throws {}
}
