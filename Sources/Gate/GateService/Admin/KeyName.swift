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
}
