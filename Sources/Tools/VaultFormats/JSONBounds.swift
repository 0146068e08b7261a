internal import ByteCoding

/// Checks of a JSON text before it is decoded: a decoder makes many objects of few bytes.
enum JSONBounds {
  /// The arrays and objects within each other, at most. Foundation writes 512, and a vault stands around them.
  static let deepest = 64
  /// The values of a file for each entry that it may have. FreeOTP+ writes a secret as a list of up to 64 numbers.
  static let valuesForEntry = 200
  /// The bytes of a member's name, as written.
  static let longestName = 256
  /// The bytes of a text that is not plain ASCII, as written.
  static let longestUnicodeText = 32_768

  /// Why a text is not decoded.
  enum Fault {
    /// More levels or values than are read, or a name or text that is too long.
    case tooComplex
    /// An object has two members of one name.
    case repeatedName
  }

  /// What forbids to decode `bytes`: more than `deepest` levels with `levels` around them, more than `mostValues`
  /// values, which are counted by their commas, brackets and braces, longer names and texts than the limits above, more
  /// combining marks in a row than `CombiningMarks.most`, or an object with a member twice. The decoder decides whether they are JSON at all.
  static func fault(in bytes: [UInt8], mostValues: Int, levels: Int = 0) -> Fault? {
    var (depth, values) = (levels, 0)
    // The names of each array or object that is open.
    var names: [JSONNames] = []
    for part in JSONOutline(bytes) {
      switch part {
      case .opening:
        depth += 1
        values += 1
        names.append(JSONNames())
      case .closing:
        depth = max(0, depth - 1)
        _ = names.popLast()
      case .comma: values += 1
      case .text(let range):
        guard range.count <= longestUnicodeText || isPlain(bytes[range]) else { return .tooComplex }
        guard !CombiningMarks.areTooMany(inJSON: bytes[range]) else { return .tooComplex }
      case .name(let range):
        guard range.count <= longestName else { return .tooComplex }
        guard !names.isEmpty else { continue }
        guard names[names.count - 1].insert(bytes[range]) else { return .repeatedName }
      }
      guard depth <= deepest, values <= mostValues else { return .tooComplex }
    }
    return nil
  }

  /// Whether a text, as it is written, is ASCII and stays so when its escapes are decoded.
  private static func isPlain(_ text: ArraySlice<UInt8>) -> Bool {
    text.allSatisfy { $0 < 0x80 } && !zip(text, text.dropFirst()).contains { $0 == 0x5C && $1 == UInt8(ascii: "u") }
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
