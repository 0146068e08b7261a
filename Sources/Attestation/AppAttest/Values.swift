internal import ByteCoding

/// The name that Apple gives an attested key: SHA-256 of its public key in X9.62 form, 32 bytes.
public struct KeyID: Sendable, Hashable {
  public static let size = 32
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

  public var base64: String { Base64.encode(bytes) }
}

/// The hash that a device was asked to sign for: opaque bytes, 32 of them on the gate's own path.
///
/// The length is not enforced here, since Apple's own sample attests a raw challenge of 24 bytes.
public struct ClientDataHash: Sendable, Hashable {
  public let bytes: [UInt8]
  public init(bytes: [UInt8]) { self.bytes = bytes }
}

/// How often a key has signed, as its device counts (big-endian in authenticator data).
public struct SignCount: Sendable, Hashable, Comparable {
  public let value: UInt32
  public init(_ value: UInt32) { self.value = value }
  public static let zero = SignCount(0)
  public static func < (first: SignCount, second: SignCount) -> Bool { first.value < second.value }
}

/// Which of Apple's two App Attest environments made a key.
public enum AttestEnvironment: String, Sendable, Hashable, CaseIterable {
  case development
  case production
}
