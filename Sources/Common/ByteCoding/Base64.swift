/// Base 64 with the standard alphabet and padding (RFC 4648 section 4).
public enum Base64 {
  /// `bytes` with padding and without line breaks.
  public static func encode(_ bytes: some Collection<UInt8>) -> String {
    Sextets.encode(bytes, alphabet: Sextets.standard, pads: true)
  }

  /// Decodes `text`; `nil` if it is not base64.
  ///
  /// Each value has exactly one accepted encoding: padding is required, white space and other alphabets are refused,
  /// and unused bits of the last digit must be zero. So no two texts decode to the same bytes.
  public static func decode(_ text: some StringProtocol) -> [UInt8]? {
    Sextets.decode(text, alphabet: Sextets.standard, pads: true)
  }
}

/// Base 64 with the alphabet that is safe in URLs, without padding (RFC 4648 section 5, as JOSE uses it).
public enum Base64URL {
  /// `bytes` without padding.
  public static func encode(_ bytes: some Collection<UInt8>) -> String {
    Sextets.encode(bytes, alphabet: Sextets.urlSafe, pads: false)
  }

  /// Decodes `text` as strictly as `Base64.decode`. Padding is refused.
  public static func decode(_ text: some StringProtocol) -> [UInt8]? {
    Sextets.decode(text, alphabet: Sextets.urlSafe, pads: false)
  }
}

/// Groups of six bits, shared by the two alphabets.
enum Sextets {
  static let standard = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
  static let urlSafe = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
  private static let padding = UInt8(ascii: "=")

  static func encode(_ bytes: some Collection<UInt8>, alphabet: [UInt8], pads: Bool) -> String {
    bytes.withBytes { encode($0, alphabet: alphabet, pads: pads) }
  }

  private static func encode(_ bytes: UnsafeBufferPointer<UInt8>, alphabet: [UInt8], pads: Bool) -> String {
    String(unsafeUninitializedCapacity: (bytes.count + 2) / 3 * 4) { buffer in
      var end = 0
      var bits: UInt32 = 0
      var count = 0
      func put(_ character: UInt8) {
        buffer[end] = character
        end += 1
      }
      for byte in bytes {
        bits = bits << 8 | UInt32(byte)
        count += 8
        while count >= 6 {
          count -= 6
          put(alphabet[Int(bits >> UInt32(count) & 0x3F)])
        }
      }
      if count > 0 { put(alphabet[Int(bits << UInt32(6 - count) & 0x3F)]) }
      while pads, end % 4 != 0 { put(padding) }
      return end
    }
  }

  static func decode(_ text: some StringProtocol, alphabet: [UInt8], pads: Bool) -> [UInt8]? {
    text.utf8.withBytes { decode($0, alphabet: alphabet, pads: pads) }
  }

  private static func decode(_ text: UnsafeBufferPointer<UInt8>, alphabet: [UInt8], pads: Bool) -> [UInt8]? {
    var digits = text[...]
    if pads {
      guard digits.count % 4 == 0 else { return nil }
      for _ in 0..<2 where digits.last == padding { digits = digits.dropLast() }
    }
    guard digits.count % 4 != 1 else { return nil }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(digits.count / 4 * 3 + 2)
    var bits: UInt32 = 0
    var count = 0
    for digit in digits {
      guard let value = value(of: digit, alphabet: alphabet) else { return nil }
      bits = bits << 6 | UInt32(value)
      count += 6
      if count >= 8 {
        count -= 8
        bytes.append(UInt8(truncatingIfNeeded: bits >> UInt32(count)))
      }
    }
    // Unused bits must be zero. Otherwise one value would have several encodings.
    return bits & (1 << UInt32(count) - 1) == 0 ? bytes : nil
  }

  private static func value(of character: UInt8, alphabet: [UInt8]) -> UInt8? {
    switch character {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"): character - UInt8(ascii: "A")
    case UInt8(ascii: "a")...UInt8(ascii: "z"): character - UInt8(ascii: "a") + 26
    case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0") + 52
    case alphabet[62]: 62
    case alphabet[63]: 63
    default: nil
    }
  }
}
