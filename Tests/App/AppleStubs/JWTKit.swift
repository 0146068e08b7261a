// Declarations of jwt-kit for type checks, not an implementation.
public protocol JWTAlgorithm: Sendable {}

public protocol JWTPayload: Codable, Sendable {
  func verify(using algorithm: some JWTAlgorithm) async throws
}

public struct JWKIdentifier: Hashable, Sendable {
  public init(string: String) { fatalError() }
}

public enum DigestAlgorithm: Sendable {
  case sha256
  case sha384
  case sha512
}

// MARK: Keys

public protocol RSAKey: Sendable {}
public protocol ECDSAKey: Sendable {}
public protocol EdDSAKey: Sendable {}

public enum Insecure {
  public enum RSA {
    public struct PublicKey: RSAKey {
      public init(modulus: some StringProtocol, exponent: some StringProtocol) throws { fatalError() }
    }

    public struct PrivateKey: RSAKey {
      public init(pem: String) throws { fatalError() }
    }
  }
}

public typealias ECDSAParameters = (x: String, y: String)

public struct ES256PublicKey: ECDSAKey {
  public init(parameters: ECDSAParameters) throws { fatalError() }
}

public struct ES256PrivateKey: ECDSAKey {
  public init(pem: String) throws { fatalError() }
}

public struct ES384PublicKey: ECDSAKey {
  public init(parameters: ECDSAParameters) throws { fatalError() }
}

public struct ES512PublicKey: ECDSAKey {
  public init(parameters: ECDSAParameters) throws { fatalError() }
}

public struct EdDSACurve: Sendable {
  public static let ed25519 = EdDSACurve()
}

public enum EdDSA: Sendable {
  public struct PublicKey: EdDSAKey {
    public init(x: String, curve: EdDSACurve) throws { fatalError() }
  }
}

// MARK: Verification

public actor JWTKeyCollection {
  public init() {}

  @discardableResult public func add(
    rsa key: some RSAKey, digestAlgorithm: DigestAlgorithm, kid: JWKIdentifier? = nil
  ) -> Self { fatalError() }
  @discardableResult public func add(
    pss key: some RSAKey, digestAlgorithm: DigestAlgorithm, kid: JWKIdentifier? = nil
  ) -> Self { fatalError() }
  @discardableResult public func add(ecdsa key: some ECDSAKey, kid: JWKIdentifier? = nil) -> Self { fatalError() }
  @discardableResult public func add(eddsa key: some EdDSAKey, kid: JWKIdentifier? = nil) -> Self { fatalError() }

  public func verify<Payload: JWTPayload>(
    _ token: String, as type: Payload.Type = Payload.self, iteratingKeys: Bool = false
  ) async throws -> Payload { fatalError() }
}
