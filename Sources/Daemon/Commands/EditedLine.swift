/// A line that is typed or pasted key by key. A value, so that every key can be tried without a terminal.
struct EditedLine {
  enum Step: Equatable {
    /// The terminal shows this text, which may be empty.
    case show(String)
    case ended
  }

  private let longest: Int
  private var bytes: [UInt8] = []
  private var isAtEnd = false

  init(longest: Int) { self.longest = longest }

  /// The line; `nil` at the end of the input, and for a line that is too long or not UTF-8.
  var text: String? {
    isAtEnd && bytes.isEmpty || bytes.count > longest ? nil : String(validating: bytes, as: UTF8.self)
  }

  mutating func take(_ key: UInt8) -> Step {
    switch key {
    case UInt8(ascii: "\n"), UInt8(ascii: "\r"): return .ended
    case 0x04:
      isAtEnd = true
      return .ended
    case 0x08, 0x7F:
      guard !bytes.isEmpty else { return .show("") }
      while let last = bytes.popLast(), last & 0xC0 == 0x80 {}
      return .show("\u{08} \u{08}")
    case 0x15:
      bytes = []
      return .show("\r\u{1B}[K")
    default:
      // One byte more than the limit says that the line is too long.
      if bytes.count <= longest { bytes.append(key) }
      return .show((0x20..<0x7F).contains(key) ? String(UnicodeScalar(key)) : "")
    }
  }
}
