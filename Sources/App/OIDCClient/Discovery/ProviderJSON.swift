internal import Foundation

/// Decodes JSON of providers, and of tokens whose signature is not verified yet.
///
/// `JSONDecoder` keeps the members of an object in a dictionary of `String`, and hashing such a name takes time with the
/// square of its combining marks: a name of 60 KB costs seconds. So the names are bounded in length and number first.
package enum ProviderJSON {
  /// The longest name of a member, in bytes. Claims that are URLs have about 100.
  static let longestName = 256
  /// The most members of all objects of a document.
  static let mostMembers = 8192
  /// The most members of all objects of a token, which anybody can write.
  static let mostTokenMembers = 2048

  /// A document with a name that is too long, or with too many members.
  package struct Unbounded: Error {}
  /// An object has a name twice: readers take different ones of its values.
  package struct Ambiguous: Error {}

  /// Decodes `bytes`.
  ///
  /// - Throws: `Unbounded`, or an error of `JSONDecoder`.
  package static func decode<Value: Decodable>(_ type: Value.Type, from bytes: [UInt8]) throws -> Value {
    try decode(type, from: bytes, members: mostMembers)
  }

  /// Decodes a part of a token.
  ///
  /// - Throws: Also `Ambiguous` (RFC 7515, section 4; RFC 7519, section 4).
  static func decode<Value: Decodable>(_ type: Value.Type, ofToken bytes: [UInt8]) throws -> Value {
    try decode(type, from: bytes, members: mostTokenMembers, eachOnce: true)
  }

  /// Decodes a document that two readers must not read differently.
  ///
  /// - Throws: Also `Ambiguous`.
  static func decode<Value: Decodable>(_ type: Value.Type, unambiguously bytes: [UInt8]) throws -> Value {
    try decode(type, from: bytes, members: mostMembers, eachOnce: true)
  }

  private static func decode<Value: Decodable>(
    _ type: Value.Type, from bytes: [UInt8], members: Int, eachOnce: Bool = false
  ) throws -> Value {
    guard isBounded(bytes, members: members) else { throw Unbounded() }
    guard !eachOnce || hasNamesOnce(bytes) else { throw Ambiguous() }
    return try JSONDecoder().decode(type, from: Data(bytes))
  }

  /// Whether no object of the text has a name twice, escapes decoded. Its names are bounded already, and the decoder
  /// judges everything else.
  private static func hasNamesOnce(_ bytes: [UInt8]) -> Bool {
    // The names of the objects that are not closed yet; an array has none.
    var open: [Set<[UInt8]>] = []
    var index = 0
    while index < bytes.count {
      switch bytes[index] {
      case UInt8(ascii: "{"), UInt8(ascii: "["): open.append([])
      case UInt8(ascii: "}"), UInt8(ascii: "]"): _ = open.popLast()
      case UInt8(ascii: "\""):
        let text = text(in: bytes, from: index)
        index = text.upperBound
        while index + 1 < bytes.count, isSpace(bytes[index + 1]) { index += 1 }
        guard index + 1 < bytes.count, bytes[index + 1] == UInt8(ascii: ":"), !open.isEmpty else { break }
        guard open[open.count - 1].insert(decoded(bytes[text])).inserted else { return false }
      default: break
      }
      index += 1
    }
    return true
  }

  /// The text that begins with the quote at `start`, without its quotes.
  private static func text(in bytes: [UInt8], from start: Int) -> Range<Int> {
    var index = start + 1
    while index < bytes.count, bytes[index] != UInt8(ascii: "\"") {
      index += bytes[index] == UInt8(ascii: "\\") ? 2 : 1
    }
    return start + 1..<max(start + 1, min(index, bytes.count))
  }

  /// The bytes of a name, with its escapes decoded as far as they are possible.
  private static func decoded(_ name: ArraySlice<UInt8>) -> [UInt8] {
    guard name.contains(UInt8(ascii: "\\")),
      let texts = try? JSONDecoder().decode([String].self, from: Data([0x5B, 0x22] + name + [0x22, 0x5D]))
    else { return Array(name) }
    return texts.flatMap { Array($0.utf8) }
  }

  private static func isSpace(_ byte: UInt8) -> Bool { [0x20, 0x09, 0x0A, 0x0D].contains(byte) }

  /// Whether each text before a colon has at most 256 bytes as it is written, and there are at most `most` of them. The
  /// decoder judges everything else.
  static func isBounded(_ bytes: [UInt8], members most: Int = mostMembers) -> Bool {
    var (members, index) = (0, 0)
    while index < bytes.count {
      guard bytes[index] == UInt8(ascii: "\"") else {
        index += 1
        continue
      }
      let text = text(in: bytes, from: index)
      let length = text.count
      index = text.upperBound + 1
      while index < bytes.count, isSpace(bytes[index]) { index += 1 }
      guard index < bytes.count, bytes[index] == UInt8(ascii: ":") else { continue }
      members += 1
      guard length <= longestName, members <= most else { return false }
    }
    return true
  }
}

extension String {
  /// Whether both texts have the same bytes. `==` takes canonically equivalent ones for the same, and its time grows with
  /// the square of the combining marks.
  func isIdentical(to other: String?) -> Bool { other.map { utf8.elementsEqual($0.utf8) } ?? false }
}
