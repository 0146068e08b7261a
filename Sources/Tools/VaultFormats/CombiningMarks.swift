internal import Foundation

/// Runs of combining marks in texts of strangers.
///
/// `String` puts the marks of a character in order before it compares or hashes them, in a time that grows with the square
/// of their number. What people write has a few; Unicode's Stream-Safe Text has 30 at most (UAX #15, section 13).
enum CombiningMarks {
  /// The marks in a row, at most.
  static let most = 64
  /// Fewer bytes, in UTF-8 or as escapes of JSON, cannot have a longer run.
  private static let fewestBytes = 2 * (most + 1)

  static func areTooMany(in text: String) -> Bool {
    var run = 0
    for scalar in text.unicodeScalars {
      let isMark = scalar.value >= 0x300 && scalar.properties.canonicalCombiningClass != .notReordered
      run = isMark ? run + 1 : 0
      if run > most { return true }
    }
    return false
  }

  /// What is wrong with `text`, which is the named part of an entry; `nil` if nothing is.
  static func fault(in text: String, _ part: String) -> String? {
    areTooMany(in: text) ? "the \(part) has more than \(most) combining marks in a row" : nil
  }

  /// The same for what a link stands for: each `%` with two hexadecimal digits is a byte.
  static func areTooMany(inLink link: String) -> Bool {
    var bytes: [UInt8] = []
    var rest = Array(link.utf8)[...]
    while let byte = rest.popFirst() {
      if byte == UInt8(ascii: "%"), let value = hexValue(rest.prefix(2)) {
        bytes.append(value)
        rest = rest.dropFirst(2)
      } else {
        bytes.append(byte)
      }
    }
    return areTooMany(in: String(decoding: bytes, as: UTF8.self))
  }

  private static func hexValue(_ digits: ArraySlice<UInt8>) -> UInt8? {
    // `UInt8` also reads a sign.
    guard digits.count == 2, digits.allSatisfy({ $0 != UInt8(ascii: "+") && $0 != UInt8(ascii: "-") }) else {
      return nil
    }
    return UInt8(String(decoding: digits, as: UTF8.self), radix: 16)
  }

  /// The same for a text of JSON, as it stands between its quotation marks. One that is malformed has none.
  static func areTooMany(inJSON text: ArraySlice<UInt8>) -> Bool {
    guard text.count >= fewestBytes, text.contains(where: { $0 >= 0x80 || $0 == UInt8(ascii: "\\") }) else {
      return false
    }
    let quotation = [UInt8(ascii: "\"")]
    guard let decoded = try? JSONDecoder().decode(String.self, from: Data(quotation + text + quotation)) else {
      return false
    }
    return areTooMany(in: decoded)
  }
}
