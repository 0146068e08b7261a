// Declarations for type checks, not an implementation.
public import Foundation

// MARK: Hashes

public protocol Digest: Hashable, ContiguousBytes, Sequence, Sendable where Element == UInt8 {}

public protocol HashFunction: Sendable {
  associatedtype Digest: CryptoKit.Digest
  init()
  mutating func update(bufferPointer: UnsafeRawBufferPointer)
  func finalize() -> Digest
}

extension HashFunction {
  public static func hash<D: DataProtocol>(data: D) -> Digest { fatalError() }
}

// The digests have these members in common.
public protocol StandInDigest: Digest {}

extension StandInDigest {
  public func withUnsafeBytes<R>(_ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R { fatalError() }
  public func makeIterator() -> Array<UInt8>.Iterator { fatalError() }
}

public struct SHA256Digest: StandInDigest {}
public struct SHA384Digest: StandInDigest {}
public struct SHA512Digest: StandInDigest {}

public struct SHA256: HashFunction {
  public init() { fatalError() }
  public mutating func update(bufferPointer: UnsafeRawBufferPointer) { fatalError() }
  public func finalize() -> SHA256Digest { fatalError() }
}

public struct SHA384: HashFunction {
  public init() { fatalError() }
  public mutating func update(bufferPointer: UnsafeRawBufferPointer) { fatalError() }
  public func finalize() -> SHA384Digest { fatalError() }
}

public struct SHA512: HashFunction {
  public init() { fatalError() }
  public mutating func update(bufferPointer: UnsafeRawBufferPointer) { fatalError() }
  public func finalize() -> SHA512Digest { fatalError() }
}

public enum Insecure {
  public struct SHA1Digest: StandInDigest {}

  public struct SHA1: HashFunction {
    public init() { fatalError() }
    public mutating func update(bufferPointer: UnsafeRawBufferPointer) { fatalError() }
    public func finalize() -> SHA1Digest { fatalError() }
  }

  public struct MD5Digest: StandInDigest {}

  public struct MD5: HashFunction {
    public init() { fatalError() }
    public mutating func update(bufferPointer: UnsafeRawBufferPointer) { fatalError() }
    public func finalize() -> MD5Digest { fatalError() }
  }
}

// MARK: Symmetric keys

public struct SymmetricKeySize: Sendable {
  public static var bits256: SymmetricKeySize { fatalError() }
}

public struct SymmetricKey: ContiguousBytes, Equatable, Sendable {
  public init<D: ContiguousBytes>(data: D) { fatalError() }
  public init(size: SymmetricKeySize) { fatalError() }
  public var bitCount: Int { fatalError() }
  public func withUnsafeBytes<R>(_ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R { fatalError() }
}

public struct HashedAuthenticationCode<H: HashFunction>: ContiguousBytes, Sequence, Sendable {
  public func withUnsafeBytes<R>(_ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R { fatalError() }
  public func makeIterator() -> Array<UInt8>.Iterator { fatalError() }
}

public struct HMAC<H: HashFunction>: Sendable {
  public static func authenticationCode<D: DataProtocol>(
    for data: D, using key: SymmetricKey
  ) -> HashedAuthenticationCode<H> { fatalError() }
}

public enum AES {
  public enum GCM {
    public struct Nonce: ContiguousBytes, Sequence, Sendable {
      public init() { fatalError() }
      public func withUnsafeBytes<R>(_ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R { fatalError() }
      public func makeIterator() -> Array<UInt8>.Iterator { fatalError() }
    }

    public struct SealedBox: Sendable {
      public init<D: DataProtocol>(combined: D) throws { fatalError() }
      public var nonce: Nonce { fatalError() }
      public var ciphertext: Data { fatalError() }
      public var tag: Data { fatalError() }
      /// `nil` if the nonce does not have 12 bytes.
      public var combined: Data? { fatalError() }
    }

    public static func seal<Plaintext: DataProtocol, AuthenticatedData: DataProtocol>(
      _ message: Plaintext, using key: SymmetricKey, nonce: Nonce? = nil,
      authenticating authenticatedData: AuthenticatedData
    ) throws -> SealedBox { fatalError() }

    public static func open<AuthenticatedData: DataProtocol>(
      _ sealedBox: SealedBox, using key: SymmetricKey, authenticating authenticatedData: AuthenticatedData
    ) throws -> Data { fatalError() }
  }
}

// MARK: P-256

public enum P256 {
  public enum Signing {
    public struct ECDSASignature: Sendable {
      public var rawRepresentation: Data { fatalError() }
    }

    public struct PublicKey: Sendable {
      public var x963Representation: Data { fatalError() }
      public var rawRepresentation: Data { fatalError() }
      public var derRepresentation: Data { fatalError() }
    }

    public struct PrivateKey: Sendable {
      public init(compactRepresentable: Bool = true) { fatalError() }
      public init<D: ContiguousBytes>(rawRepresentation data: D) throws { fatalError() }
      public init(pemRepresentation: String) throws { fatalError() }
      public var publicKey: PublicKey { fatalError() }
      public var rawRepresentation: Data { fatalError() }
      public func signature<D: DataProtocol>(for data: D) throws -> ECDSASignature { fatalError() }
    }
  }
}

public enum P384 {
  public enum Signing {
    public struct PublicKey: Sendable {
      public var derRepresentation: Data { fatalError() }
    }

    public struct PrivateKey: Sendable {
      public init(pemRepresentation: String) throws { fatalError() }
      public var publicKey: PublicKey { fatalError() }
    }
  }
}

public enum P521 {
  public enum Signing {
    public struct PublicKey: Sendable {
      public var derRepresentation: Data { fatalError() }
    }

    public struct PrivateKey: Sendable {
      public init(pemRepresentation: String) throws { fatalError() }
      public var publicKey: PublicKey { fatalError() }
    }
  }
}

public enum SecureEnclave {
  public static var isAvailable: Bool { fatalError() }
}
