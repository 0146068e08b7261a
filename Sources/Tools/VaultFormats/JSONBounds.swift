/// Checks of a JSON text before it is decoded: a decoder makes many objects of few bytes.
enum JSONBounds {
  /// The arrays and objects within each other, at most. Foundation writes 512, and a vault stands around them.
  static let deepest = 64
  /// The values of a file for each entry that it may have. FreeOTP+ writes a secret as a list of up to 64 numbers.
  static let valuesForEntry = 200
  /// The bytes of a member's name, as written.
  static let longestName = 256
  /// The bytes of a text that is not plain ASCII, as written. `String` puts the combining marks of a character in order
  /// before it compares or hashes them, in a time that grows with the square of their number.
  static let longestUnicodeText = 32_768

  /// Whether `bytes` have at most `deepest` levels, at most `mostValues` values, which are counted by their commas,
  /// brackets and braces, and no longer names and texts than the limits above. The decoder decides whether they are
  /// JSON at all.
  static func allow(_ bytes: some Sequence<UInt8>, mostValues: Int) -> Bool {
    var (depth, values, isText, isEscaped) = (0, 0, false, false)
    // Of the text that is being read, or of the last one.
    var (length, isPlain) = (0, true)
    for byte in bytes {
      if isText {
        if byte == UInt8(ascii: "\""), !isEscaped {
          isText = false
          continue
        }
        if byte >= 0x80 || isEscaped && byte == UInt8(ascii: "u") { isPlain = false }
        isEscaped = byte == UInt8(ascii: "\\") && !isEscaped
        length += 1
        guard isPlain || length <= longestUnicodeText else { return false }
        continue
      }
      switch byte {
      case UInt8(ascii: "\""): (isText, isEscaped, length, isPlain) = (true, false, 0, true)
      case UInt8(ascii: ":"): guard length <= longestName else { return false }
      case UInt8(ascii: "["), UInt8(ascii: "{"):
        depth += 1
        values += 1
      case UInt8(ascii: "]"), UInt8(ascii: "}"): depth = max(0, depth - 1)
      case UInt8(ascii: ","): values += 1
      default: continue
      }
      guard depth <= deepest, values <= mostValues else { return false }
    }
    return true
  }
}

/// The entries of a file, of which each may be malformed without the others.
struct EntryList<Value: Decodable>: Decodable {
  let items: [Lenient<Value>]

  /// - Throws: `VaultFormatError.tooLarge` before anything is read of a list that is too long.
  init(from decoder: any Decoder) throws {
    var container = try decoder.unkeyedContainer()
    let most = decoder.mostEntries
    guard container.count.map({ $0 <= most }) ?? true else { throw VaultFormatError.tooLarge }
    var items: [Lenient<Value>] = []
    while !container.isAtEnd {
      guard items.count < most else { throw VaultFormatError.tooLarge }
      items.append(try container.decode(Lenient<Value>.self))
    }
    self.items = items
  }
}
