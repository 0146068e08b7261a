internal import ByteCoding
#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// Decodes JSON of providers, and of tokens whose signature is not verified yet.
///
/// `JSONDecoder` keeps the members of an object in a dictionary of `String`, and hashing such a name takes time with the
/// square of its combining marks: a name of 60 KB costs seconds. So the names are bounded in length and number first.
package enum ProviderJSON {
  /// The longest name of a member, in bytes. Claims that are URLs have about 100.
  package static let longestName = 256
  /// The most members of all objects of a document.
  package static let mostMembers = 8192
  /// The most members of all objects of a token, which anybody can write.
  package static let mostTokenMembers = 2048

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
  package static func decode<Value: Decodable>(_ type: Value.Type, ofToken bytes: [UInt8]) throws -> Value {
    try decode(type, from: bytes, members: mostTokenMembers, eachOnce: true)
  }

  /// Decodes a document that two readers must not read differently.
  ///
  /// - Throws: Also `Ambiguous`.
  package static func decode<Value: Decodable>(_ type: Value.Type, unambiguously bytes: [UInt8]) throws -> Value {
    try decode(type, from: bytes, members: mostMembers, eachOnce: true)
  }

  private static func decode<Value: Decodable>(
    _ type: Value.Type, from bytes: [UInt8], members: Int, eachOnce: Bool = false
  ) throws -> Value {
    guard isBounded(bytes, members: members) else { throw Unbounded() }
    guard !eachOnce || JSONOutline.hasNamesOnce(bytes) else { throw Ambiguous() }
    return try JSONDecoder().decode(type, from: Data(bytes))
  }

  /// Whether each text before a colon has at most 256 bytes as it is written, and there are at most `most` of them. The
  /// decoder judges everything else.
  package static func isBounded(_ bytes: [UInt8], members most: Int = mostMembers) -> Bool {
    var members = 0
    for case .name(let name) in JSONOutline(bytes) {
      members += 1
      guard name.count <= longestName, members <= most else { return false }
    }
    return true
  }
}

extension String {
  /// Whether both texts have the same bytes. `==` takes canonically equivalent ones for the same, and its time grows with
  /// the square of the combining marks.
  package func isIdentical(to other: String?) -> Bool { other.map { utf8.elementsEqual($0.utf8) } ?? false }
}
