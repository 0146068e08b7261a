internal import ByteCoding
internal import Cryptography

/// The name that Apple gives an attested key: SHA-256 of its public key in X9.62 form, 32 bytes.
public struct KeyID: Sendable, Hashable {
  /// The size of a key identifier in bytes.
  public static let size = 32
  /// The identifier, 32 bytes.
  public let bytes: [UInt8]

  /// `nil` unless there are exactly 32 bytes.
  public init?(bytes: [UInt8]) {
    guard bytes.count == Self.size else { return nil }
    self.bytes = bytes
  }

  /// The identifier as `DCAppAttestService.generateKey()` returns it: standard base64 with padding, 44 characters.
  public init?(base64 text: some StringProtocol) {
    guard let bytes = Base64.decode(text) else { return nil }
    self.init(bytes: bytes)
  }

  /// The identifier as a client sends it: any form of base64 that `Base64.decode(anyForm:)` accepts.
  ///
  /// Keep and compare `bytes`, or write `base64`: several texts are the same identifier.
  public init?(received text: some StringProtocol) {
    guard let bytes = Base64.decode(anyForm: text) else { return nil }
    self.init(bytes: bytes)
  }

  /// The identifier of a public key: SHA-256 of its X9.63 form.
  public init(ofPublicKey x963: [UInt8]) { bytes = SHA256.hash(x963) }

  /// The identifier in base64, as `generateKey()` returns it.
  public var base64: String { Base64.encode(bytes) }

  /// Hashes the bytes in one piece. An array would hash them one by one.
  public func hash(into hasher: inout Hasher) { bytes.withUnsafeBytes { hasher.combine(bytes: $0) } }
}

/// The hash that a device signs: opaque bytes, 32 of them from the gate.
///
/// The length is not enforced here, since Apple's own sample attests a raw challenge of 24 bytes.
public struct ClientDataHash: Sendable, Hashable {
  /// The bytes that the device was given as client data hash.
  public let bytes: [UInt8]
  /// Creates a hash from its bytes, which are not checked.
  public init(bytes: [UInt8]) { self.bytes = bytes }
}

/// How often a key has signed, as its device counts (big-endian in authenticator data).
public struct SignCount: Sendable, Hashable, Comparable {
  /// The counter.
  public let value: UInt32
  /// Creates a counter.
  public init(_ value: UInt32) { self.value = value }

  /// The counter of a key that has not signed an assertion.
  public static let zero = SignCount(0)
  public static func < (first: SignCount, second: SignCount) -> Bool { first.value < second.value }
}

/// The App Attest environment in which a key was made.
public enum AttestEnvironment: String, Sendable, Hashable, CaseIterable {
  /// Apple's sandbox, for apps that are run from Xcode.
  case development
  /// Production, for TestFlight, the App Store and other distributions.
  case production
}
