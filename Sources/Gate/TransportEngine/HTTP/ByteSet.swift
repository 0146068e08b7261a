/// A set of ASCII characters as 128 bits: a lookup is a shift and a mask, without a table in memory.
struct ByteSet {
  /// Bit n is character n, 0 to 63.
  private let low: UInt64
  /// Bit n is character 64 + n.
  private let high: UInt64

  private init(low: UInt64, high: UInt64) {
    self.low = low
    self.high = high
  }

  /// Returns whether `byte` is in the set; always `false` above 0x7F.
  @inline(__always)
  func contains(_ byte: UInt8) -> Bool {
    let word = byte < 64 ? low : high
    return byte < 128 && word >> UInt64(byte & 63) & 1 == 1
  }

  // Computed properties, so that the optimizer folds the words into the comparisons. The tests list the sets in full.

  /// `tchar`: the characters of methods, field names and list tokens (RFC 9110 section 5.6.2).
  static var token: ByteSet { ByteSet(low: 0x03FF_6CFA_0000_0000, high: 0x57FF_FFFF_C7FF_FFFE) }

  /// `pchar` without the percent sign, plus the slash (RFC 3986 section 3.3).
  static var path: ByteSet { ByteSet(low: 0x2FFF_FFD2_0000_0000, high: 0x47FF_FFFE_87FF_FFFF) }

  /// The characters of a path as clients send it: `path` and `[ ] ^ |`. RFC 3986 section 3.3 does not allow the last ones,
  /// but browsers send them unescaped (WHATWG URL, path percent-encode set), and HTTP gives them no meaning. A backslash is
  /// refused everywhere, because some servers read it as a slash.
  static var sentPath: ByteSet { ByteSet(low: 0x2FFF_FFD2_0000_0000, high: 0x57FF_FFFE_EFFF_FFFF) }

  /// The characters of a query as clients send it: `sentPath`, the question mark, and ``` ` { } ```, which browsers send
  /// unescaped in a query alone.
  static var query: ByteSet { ByteSet(low: 0xAFFF_FFD2_0000_0000, high: 0x7FFF_FFFF_EFFF_FFFF) }

  /// `unreserved`: characters whose escaped and bare forms mean the same (RFC 3986 section 2.3).
  static var unreserved: ByteSet { ByteSet(low: 0x03FF_6000_0000_0000, high: 0x47FF_FFFE_87FF_FFFE) }

  /// Letters, digits, `-`, `.` and `_`: the characters of host names in DNS and container networks.
  static var hostName: ByteSet { ByteSet(low: 0x03FF_6000_0000_0000, high: 0x07FF_FFFE_87FF_FFFE) }
}

extension UInt8 {
  static let tab = UInt8(ascii: "\t")
  static let lineFeed = UInt8(ascii: "\n")
  static let carriageReturn = UInt8(ascii: "\r")
  static let space = UInt8(ascii: " ")
  static let colon = UInt8(ascii: ":")
  static let slash = UInt8(ascii: "/")
  static let percent = UInt8(ascii: "%")
  static let questionMark = UInt8(ascii: "?")

  /// Whether this byte may be in a field value or a reason phrase: tab, space, visible ASCII, and every byte above
  /// ASCII (RFC 9110 section 5.5).
  @inline(__always)
  var isFieldContent: Bool { self >= 0x20 && self != 0x7F || self == .tab }

  @inline(__always)
  var isDigit: Bool { self &- 0x30 < 10 }

  /// The value 0 to 15; `nil` if this is not a hexadecimal digit.
  @inline(__always)
  var hexDigitValue: UInt8? {
    switch self {
    case 0x30...0x39: self - 0x30
    case 0x41...0x46: self - 0x41 + 10
    case 0x61...0x66: self - 0x61 + 10
    default: nil
    }
  }
}
