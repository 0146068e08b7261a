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
  static let mostTokenMembers = 512

  /// A document with a name that is too long, or with too many members.
  package struct Unbounded: Error {}

  /// Decodes `bytes`.
  ///
  /// - Throws: `Unbounded`, or an error of `JSONDecoder`.
  package static func decode<Value: Decodable>(_ type: Value.Type, from bytes: [UInt8]) throws -> Value {
    try decode(type, from: bytes, members: mostMembers)
  }

  /// Decodes a part of a token.
  static func decode<Value: Decodable>(_ type: Value.Type, ofToken bytes: [UInt8]) throws -> Value {
    try decode(type, from: bytes, members: mostTokenMembers)
  }

  private static func decode<Value: Decodable>(
    _ type: Value.Type, from bytes: [UInt8], members: Int
  ) throws -> Value {
    guard isBounded(bytes, members: members) else { throw Unbounded() }
    return try JSONDecoder().decode(type, from: Data(bytes))
  }

  /// Whether each text before a colon has at most 256 bytes as it is written, and there are at most `most` of them. The
  /// decoder judges everything else.
  static func isBounded(_ bytes: [UInt8], members most: Int = mostMembers) -> Bool {
    var (members, index) = (0, 0)
    while index < bytes.count {
      guard bytes[index] == UInt8(ascii: "\"") else {
        index += 1
        continue
      }
      let start = index + 1
      index = start
      while index < bytes.count, bytes[index] != UInt8(ascii: "\"") {
        index += bytes[index] == UInt8(ascii: "\\") ? 2 : 1
      }
      let length = min(index, bytes.count) - start
      index += 1
      while index < bytes.count, [0x20, 0x09, 0x0A, 0x0D].contains(bytes[index]) { index += 1 }
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
