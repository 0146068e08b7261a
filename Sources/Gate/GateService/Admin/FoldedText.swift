internal import ByteCoding

/// A text to search for, without regard to the case of ASCII letters.
///
/// Compares bytes: characters could consist of any number of bytes that clients choose. A search takes time proportional
/// to the length of the text that is searched (Knuth, Morris and Pratt).
struct FoldedText {
  private let bytes: [UInt8]
  /// For each number of matched bytes, how many are still matched if the next one differs.
  private let fallback: [Int]

  init(_ text: String) {
    bytes = text.utf8.map(\.lowercasedASCII)
    var fallback = [0, 0]
    var matched = 0
    for byte in bytes.dropFirst() {
      while matched > 0, bytes[matched] != byte { matched = fallback[matched] }
      if bytes[matched] == byte { matched += 1 }
      fallback.append(matched)
    }
    self.fallback = fallback
  }

  /// Whether `text` contains this one.
  func occurs(in text: String) -> Bool {
    guard !bytes.isEmpty else { return true }
    var matched = 0
    for byte in text.utf8.lazy.map(\.lowercasedASCII) {
      while matched > 0, bytes[matched] != byte { matched = fallback[matched] }
      if bytes[matched] == byte { matched += 1 }
      if matched == bytes.count { return true }
    }
    return false
  }

  /// Whether `text` begins with this one.
  func begins(_ text: String) -> Bool { text.utf8.lazy.map(\.lowercasedASCII).starts(with: bytes) }
}
