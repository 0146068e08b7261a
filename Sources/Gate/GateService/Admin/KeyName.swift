internal import AppAttest
internal import AttestGate

/// An operator's name for a key: its hash (`KeyHash`) or the beginning of it.
public struct KeyName: Sendable, Hashable {
  /// The minimum length in characters.
  public static let leastLength = 6
  /// The length of a complete hash in characters.
  public static let length = 43
  public let text: String

  /// Returns `nil` unless `text` has 6 to 43 characters of base64url.
  public init?(_ text: some StringProtocol) {
    guard (Self.leastLength...Self.length).contains(text.utf8.count),
      text.utf8.allSatisfy({ byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
          UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
          true
        default: false
        }
      })
    else { return nil }
    self.text = String(text)
  }

  /// Returns the name that `text` is or stands for: a hash, its beginning, or the key id of a device in base64.
  ///
  /// A key id may have any form in which clients send it, except one: in the alphabet for URLs and without padding it
  /// looks like a hash, and is read as one.
  public init?(any text: String) {
    guard let name = KeyName(text) ?? KeyID(received: text).flatMap({ KeyName(KeyHash(of: $0).text) }) else {
      return nil
    }
    self = name
  }
}
