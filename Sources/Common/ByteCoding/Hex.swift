/// Base 16, two digits a byte (RFC 4648 section 8).
public enum Hex {
  /// `bytes` as lowercase digits, twice as many as there are bytes.
  public static func encode(_ bytes: some Collection<UInt8>) -> String {
    bytes.withBytes { bytes in
      String(unsafeUninitializedCapacity: bytes.count * 2) { digits in
        for (index, byte) in bytes.enumerated() {
          digits[2 * index] = digit(byte >> 4)
          digits[2 * index + 1] = digit(byte & 0x0F)
        }
        return bytes.count * 2
      }
    }
  }

  /// Decodes `text`; `nil` if it has an odd length or a character other than `0-9 a-f A-F`.
  public static func decode(_ text: some StringProtocol) -> [UInt8]? { text.utf8.withBytes { decode($0, by: value) } }

  /// Decodes `text`; `nil` if it has an odd length or a character other than `0-9 a-f`. So each value has exactly one
  /// accepted encoding.
  public static func decode(lowercase text: String) -> [UInt8]? {
    var text = text
    return text.withUTF8 { decode($0) { $0 < UInt8(ascii: "A") || $0 > UInt8(ascii: "F") ? value(of: $0) : nil } }
  }

  @inline(__always)
  private static func decode(
    _ digits: UnsafeBufferPointer<UInt8>, by value: (UInt8) -> UInt8?
  ) -> [UInt8]? {
    guard digits.count % 2 == 0 else { return nil }
    var isHex = true
    let bytes = [UInt8](upTo: digits.count / 2) { bytes in
      for index in 0..<digits.count / 2 {
        guard let high = value(digits[2 * index]), let low = value(digits[2 * index + 1]) else {
          isHex = false
          return index
        }
        bytes[index] = high << 4 | low
      }
      return digits.count / 2
    }
    return isHex ? bytes : nil
  }

  private static func digit(_ value: UInt8) -> UInt8 {
    value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10
  }

  private static func value(of character: UInt8) -> UInt8? {
    switch character {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): character - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): character - UInt8(ascii: "A") + 10
    default: nil
    }
  }
}
