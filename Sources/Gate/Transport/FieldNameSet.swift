internal import ByteCoding

/// A set of complete header field names and prefixes, searched without regard to case.
///
/// Every field of every request is looked up, so bytes are compared in place, the first eight at once. A set of strings
/// would make and hash a lowercase copy of each name, at twenty times the cost.
public struct FieldNameSet: Sendable {
  private struct Entry: Sendable {
    /// The first eight bytes in lowercase, the first one lowest.
    let head: UInt64
    /// The bits of the bytes of `head` that the entry has.
    let mask: UInt64
    let length: Int
    /// The bytes after the first eight.
    let rest: [UInt8]
    let isPrefix: Bool
  }

  /// Grouped by first byte.
  private var entries: [Entry] = []
  /// The range of `entries` for each first byte.
  private var places = [Range<Int>](repeating: 0..<0, count: 256)

  /// Empty texts are left out: no field has an empty name.
  public init(names: some Sequence<String>, prefixes: some Sequence<String> = []) {
    let all = names.map { (Array($0.lowercased().utf8), false) } + prefixes.map { (Array($0.lowercased().utf8), true) }
    for (initial, group) in Dictionary(grouping: all, by: \.0.first) {
      guard let initial else { continue }
      let start = entries.count
      for (name, isPrefix) in group {
        entries.append(
          Entry(
            head: name.withUnsafeBufferPointer { EightBytes(prefixOf: $0).lowercase },
            mask: name.count < 8 ? 1 << UInt64(8 * name.count) - 1 : .max,
            length: name.count, rest: Array(name.dropFirst(8)), isPrefix: isPrefix))
      }
      places[Int(initial)] = start..<entries.count
    }
  }

  /// Returns `true` if `name`, in any case, is one of the names or begins with one of the prefixes.
  public func contains(_ name: UnsafeBufferPointer<UInt8>) -> Bool {
    let head = EightBytes(prefixOf: name).lowercase
    return entries.withUnsafeBufferPointer { entries in
      for index in places[Int(truncatingIfNeeded: head & 0xFF)] where head & entries[index].mask == entries[index].head
      {
        let length = entries[index].length
        guard entries[index].isPrefix ? name.count >= length : name.count == length else { continue }
        let hasRest = entries[index].rest.withUnsafeBufferPointer { rest in
          rest.indices.allSatisfy { rest[$0] == name[8 + $0].lowercasedASCII }
        }
        if hasRest { return true }
      }
      return false
    }
  }
}
