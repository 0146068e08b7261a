public import Foundation

extension UUID {
  /// The UUID in lower case, as the database, tokens and answers have it.
  public var text: String {
    let id = uuid
    return withUnsafeBytes(of: id) { bytes in
      String(unsafeUninitializedCapacity: 36) { text in
        var end = 0
        for (index, byte) in bytes.enumerated() {
          if index == 4 || index == 6 || index == 8 || index == 10 {
            text[end] = UInt8(ascii: "-")
            end += 1
          }
          text[end] = Self.digit(byte >> 4)
          text[end + 1] = Self.digit(byte & 0xF)
          end += 2
        }
        return end
      }
    }
  }

  /// Reads a UUID in the form of `text`, in either case; `nil` for anything else.
  public init?(text: some StringProtocol) {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(16)
    var high: UInt8?
    var position = 0
    for character in text.utf8 {
      if position == 8 || position == 13 || position == 18 || position == 23 {
        guard character == UInt8(ascii: "-") else { return nil }
      } else {
        guard position < 36, let value = Self.value(of: character) else { return nil }
        if let first = high {
          bytes.append(first << 4 | value)
          high = nil
        } else {
          high = value
        }
      }
      position += 1
    }
    guard position == 36, bytes.count == 16 else { return nil }
    self = bytes.withUnsafeBytes { UUID(uuid: $0.loadUnaligned(as: uuid_t.self)) }
  }

  private static func digit(_ value: UInt8) -> UInt8 {
    value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10
  }

  private static func value(of digit: UInt8) -> UInt8? {
    switch digit {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
    default: nil
    }
  }
}
