public import AppAttest
public import ByteCoding
internal import Cryptography

/// A nonce as clients receive it: 32 bytes, written as 64 lowercase hex digits.
///
/// It consists of one byte for the key number, six bytes for the time of issue (milliseconds since the epoch,
/// big-endian), nine random bytes, and a 16-byte authentication code over the first 16 bytes. A value of this type is
/// only well-formed: `Challenges` checks its origin and age, and the `KeyRegistry` checks that it is unspent.
public struct Nonce: Sendable, Hashable {
  /// The number of bytes in a nonce.
  public static let size = 32
  /// The number of bytes that the authentication code covers, and the number of bytes in the code.
  static let half = 16

  public let bytes: [UInt8]

  /// Returns `nil` unless there are exactly 32 bytes.
  public init?(bytes: [UInt8]) {
    guard bytes.count == Self.size else { return nil }
    self.bytes = bytes
  }

  /// Returns `nil` unless `text` is exactly 64 characters of `0-9 a-f`: a nonce has only one textual form.
  public init?(text: String) {
    guard text.utf8.count == 2 * Self.size, let bytes = Hex.decode(lowercase: text) else { return nil }
    self.init(bytes: bytes)
  }

  /// The 64 hex digits that clients receive.
  public var text: String { Hex.encode(bytes) }

  /// The time of issue in the nonce, in milliseconds.
  public var issuedAt: Timestamp {
    Timestamp(milliseconds: bytes[1..<7].reduce(0) { $0 << 8 | Int64($1) })
  }

  /// The hash that the device signs: the SHA-256 of the 32 bytes, never of their text.
  public var clientDataHash: ClientDataHash { ClientDataHash(bytes: SHA256.hash(bytes)) }

  var keyNumber: UInt8 { bytes[0] }
  var authenticated: [UInt8] { Array(bytes[..<Self.half]) }
  var code: [UInt8] { Array(bytes[Self.half...]) }
}
