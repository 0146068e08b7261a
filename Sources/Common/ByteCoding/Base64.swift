/// Base 64 with the standard alphabet and padding (RFC 4648 section 4).
public enum Base64 {
  /// `bytes` with padding and without line breaks.
  @inlinable
  public static func encode(_ bytes: some Collection<UInt8>) -> String {
    bytes.withBytes { Sextets.standard.encode($0, pads: true) }
  }

  /// Decodes `text`; `nil` if it is not base64.
  ///
  /// Each value has exactly one accepted encoding: padding is required, white space and other alphabets are refused,
  /// and unused bits of the last digit must be zero. So no two texts decode to the same bytes.
  @inlinable
  public static func decode(_ text: some StringProtocol) -> [UInt8]? {
    text.utf8.withBytes { Sextets.standard.decode($0, pads: true) }
  }
}

/// Base 64 with the alphabet that is safe in URLs, without padding (RFC 4648 section 5, as JOSE uses it).
public enum Base64URL {
  /// `bytes` without padding.
  @inlinable
  public static func encode(_ bytes: some Collection<UInt8>) -> String {
    bytes.withBytes { Sextets.urlSafe.encode($0, pads: false) }
  }

  /// Decodes `text` as strictly as `Base64.decode`. Padding is refused.
  @inlinable
  public static func decode(_ text: some StringProtocol) -> [UInt8]? {
    text.utf8.withBytes { Sextets.urlSafe.decode($0, pads: false) }
  }
}

/// Digits of six bits, with one of the two alphabets.
@usableFromInline
struct Sextets: Sendable {
  @usableFromInline static let standard = Sextets(last: "+/")
  @usableFromInline static let urlSafe = Sextets(last: "-_")

  private static let padding = UInt8(ascii: "=")
  private static let noDigit: UInt8 = 0xFF

  /// The digit of each of 64 values.
  private let digits: [UInt8]
  /// The value of each of 256 characters; `noDigit` if it is not in the alphabet.
  private let values: [UInt8]

  private init(last: String) {
    digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789\(last)".utf8)
    var values = [UInt8](repeating: Self.noDigit, count: 256)
    for (value, digit) in digits.enumerated() { values[Int(digit)] = UInt8(value) }
    self.values = values
  }

  @usableFromInline
  func encode(_ bytes: UnsafeBufferPointer<UInt8>, pads: Bool) -> String {
    String(unsafeUninitializedCapacity: (bytes.count + 2) / 3 * 4) { output in
      digits.withUnsafeBufferPointer { digits in
        var end = 0
        func put(_ bits: UInt32, _ count: Int) {
          for place in 0..<count { output[end + place] = digits[Int(bits >> UInt32(18 - 6 * place) & 0x3F)] }
          end += count
        }
        let whole = bytes.count / 3 * 3
        for start in stride(from: 0, to: whole, by: 3) {
          put(UInt32(bytes[start]) << 16 | UInt32(bytes[start + 1]) << 8 | UInt32(bytes[start + 2]), 4)
        }
        switch bytes.count - whole {
        case 1: put(UInt32(bytes[whole]) << 16, 2)
        case 2: put(UInt32(bytes[whole]) << 16 | UInt32(bytes[whole + 1]) << 8, 3)
        default: break
        }
        while pads, end % 4 != 0 {
          output[end] = Self.padding
          end += 1
        }
        return end
      }
    }
  }

  @usableFromInline
  func decode(_ text: UnsafeBufferPointer<UInt8>, pads: Bool) -> [UInt8]? {
    var length = text.count
    if pads {
      guard length % 4 == 0 else { return nil }
      for _ in 0..<2 where length > 0 && text[length - 1] == Self.padding { length -= 1 }
    }
    // A single digit after whole groups has fewer bits than a byte.
    guard length % 4 != 1 else { return nil }
    var isValid = true
    let bytes = [UInt8](unsafeUninitializedCapacity: length / 4 * 3 + 2) { output, count in
      values.withUnsafeBufferPointer { values in
        var bits: UInt32 = 0
        var pending: UInt32 = 0
        for index in 0..<length {
          let value = values[Int(text[index])]
          guard value != Self.noDigit else {
            isValid = false
            return
          }
          bits = bits << 6 | UInt32(value)
          pending += 6
          if pending >= 8 {
            pending -= 8
            output[count] = UInt8(truncatingIfNeeded: bits >> pending)
            count += 1
          }
        }
        // Unused bits must be zero. Otherwise one value would have several encodings.
        isValid = bits & (1 << pending - 1) == 0
      }
    }
    return isValid ? bytes : nil
  }
}
