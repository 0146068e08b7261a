// Declarations of swift-crypto for type checks, not an implementation.
public import CryptoKit
public import Foundation

public enum KDF {
  public enum Scrypt {
    public static func deriveKey<Passphrase: DataProtocol, Salt: DataProtocol>(
      from password: Passphrase, salt: Salt, outputByteCount: Int, rounds: Int, blockSize: Int, parallelism: Int,
      maxMemory: Int? = nil
    ) throws -> SymmetricKey { fatalError() }
  }
}

public enum _RSA {
  public enum Signing {
    public struct Padding: Sendable {
      public static let insecurePKCS1v1_5 = Padding()
      public static let PSS = Padding()
    }

    public struct RSASignature: Sendable {
      public var rawRepresentation: Data { fatalError() }
    }

    public struct PublicKey: Sendable {
      public var derRepresentation: Data { fatalError() }
    }

    public struct PrivateKey: Sendable {
      public init(pemRepresentation: String) throws { fatalError() }
      public var publicKey: PublicKey { fatalError() }
      public func signature<D: Digest>(for digest: D, padding: Padding) throws -> RSASignature { fatalError() }
    }
  }
}
