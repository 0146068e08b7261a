public import AppAttest
public import ByteCoding
internal import Cryptography

/// A challenge as the gate hands it out: 32 bytes, written as 64 lowercase hex digits.
///
/// One byte names the key that made it, six bytes are the time of issue (milliseconds since the epoch, big-endian),
/// nine are random, and sixteen authenticate the sixteen before them. A value of this type has the right form and no
/// more: whether it is ours, and still valid, is for `Challenges` to say, and whether it is unspent for the
/// `KeyRegistry`.
public struct Nonce: Sendable, Hashable {
  /// Bytes of a nonce.
  public static let size = 32
  /// Bytes that the authentication code covers, and bytes of the code itself.
  static let half = 16

  public let bytes: [UInt8]

  /// `nil` unless there are exactly 32 bytes.
  public init?(bytes: [UInt8]) {
    guard bytes.count == Self.size else { return nil }
    self.bytes = bytes
  }

  /// `nil` unless `text` is exactly 64 of `0-9 a-f`: a nonce has one spelling.
  public init?(text: some StringProtocol) {
    guard text.utf8.count == 2 * Self.size, text.utf8.allSatisfy(Self.isLowercaseDigit), let bytes = Hex.decode(text)
    else { return nil }
    self.init(bytes: bytes)
  }

  private static func isLowercaseDigit(_ character: UInt8) -> Bool {
    switch character {
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"): true
    default: false
    }
  }

  /// The 64 digits that clients see.
  public var text: String { Hex.encode(bytes) }

  /// When the nonce says it was issued, to the millisecond.
  public var issuedAt: Timestamp {
    Timestamp(milliseconds: bytes[1..<7].reduce(0) { $0 << 8 | Int64($1) })
  }

  /// What a device signs for: SHA-256 of the 32 bytes, never of their text.
  public var clientDataHash: ClientDataHash { ClientDataHash(bytes: SHA256.hash(bytes)) }

  var keyNumber: UInt8 { bytes[0] }
  var authenticated: [UInt8] { Array(bytes[..<Self.half]) }
  var code: [UInt8] { Array(bytes[Self.half...]) }
}
