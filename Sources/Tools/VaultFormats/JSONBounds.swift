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

  /// Why a text is not decoded.
  enum Fault {
    /// More levels or values than are read, or a name or text that is too long.
    case tooComplex
    /// An object has two members of one name.
    case repeatedName
  }

  /// What forbids to decode `bytes`: more than `deepest` levels with `levels` around them, more than `mostValues`
  /// values, which are counted by their commas, brackets and braces, longer names and texts than the limits above, or
  /// an object with a member twice. The decoder decides whether they are JSON at all.
  static func fault(in bytes: some Sequence<UInt8>, mostValues: Int, levels: Int = 0) -> Fault? {
    var (depth, values, isText, isEscaped) = (levels, 0, false, false)
    // Of the text that is being read, or of the last one.
    var (length, isPlain) = (0, true)
    var beginning: [UInt8] = []
    // The hashes of the names of each object that is open.
    var names: [Set<Int>] = []
    for byte in bytes {
      if isText {
        if byte == UInt8(ascii: "\""), !isEscaped {
          isText = false
          continue
        }
        if byte >= 0x80 || isEscaped && byte == UInt8(ascii: "u") { isPlain = false }
        isEscaped = byte == UInt8(ascii: "\\") && !isEscaped
        length += 1
        if length <= longestName { beginning.append(byte) }
        guard isPlain || length <= longestUnicodeText else { return .tooComplex }
        continue
      }
      switch byte {
      case UInt8(ascii: "\""):
        (isText, isEscaped, length, isPlain) = (true, false, 0, true)
        beginning.removeAll(keepingCapacity: true)
      case UInt8(ascii: ":"):
        guard length <= longestName else { return .tooComplex }
        guard !names.isEmpty else { continue }
        guard names[names.count - 1].insert(hash(ofName: beginning)).inserted else { return .repeatedName }
      case UInt8(ascii: "["), UInt8(ascii: "{"):
        depth += 1
        values += 1
        names.append([])
      case UInt8(ascii: "]"), UInt8(ascii: "}"):
        depth = max(0, depth - 1)
        _ = names.popLast()
      case UInt8(ascii: ","): values += 1
      default: continue
      }
      guard depth <= deepest, values <= mostValues else { return .tooComplex }
    }
    return nil
  }

  /// The hash of a name, which may be written with escapes: of 64 bits under a random key, so that no file has two
  /// names of one hash by intent.
  private static func hash(ofName written: [UInt8]) -> Int {
    var hasher = Hasher()
    guard written.contains(UInt8(ascii: "\\")) else {
      written.withUnsafeBytes { hasher.combine(bytes: $0) }
      return hasher.finalize()
    }
    var name: [UInt8] = []
    var rest = written[...]
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "\\"), let escaped = rest.popFirst() else {
        name.append(byte)
        continue
      }
      guard escaped == UInt8(ascii: "u"), let unit = UInt16(String(decoding: rest.prefix(4), as: UTF8.self), radix: 16)
      else {
        // No known name has a control character, whose escapes stay as they are.
        name += "\"\\/".utf8.contains(escaped) ? [escaped] : [byte, escaped]
        continue
      }
      rest = rest.dropFirst(4)
      // A half of a pair is none, and stays as it is written.
      name += UnicodeScalar(unit).map { Array(String($0).utf8) } ?? written
    }
    name.withUnsafeBytes { hasher.combine(bytes: $0) }
    return hasher.finalize()
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
