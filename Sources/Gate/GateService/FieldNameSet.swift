/// A set of complete header field names and prefixes, searched without regard to case.
///
/// Every field of every request is looked up, so bytes are compared in place. A set of strings would make and hash a
/// lowercase copy of each name, at twenty times the cost.
struct FieldNameSet: Sendable {
  private struct Entry: Sendable {
    let start: Int
    let length: Int
    let isPrefix: Bool
  }

  /// All names, concatenated, in lowercase.
  private var bytes: [UInt8] = []
  /// Sorted by first byte.
  private var entries: [Entry] = []
  /// The range of `entries` for each first byte.
  private var places = [Range<Int>](repeating: 0..<0, count: 256)

  init(names: some Sequence<String>, prefixes: some Sequence<String> = []) {
    let all = names.map { ($0.lowercased(), false) } + prefixes.map { ($0.lowercased(), true) }
    for (initial, group) in Dictionary(grouping: all, by: { $0.0.utf8.first }) {
      guard let initial else { continue }
      let start = entries.count
      for (name, isPrefix) in group {
        entries.append(Entry(start: bytes.count, length: name.utf8.count, isPrefix: isPrefix))
        bytes += name.utf8
      }
      places[Int(initial)] = start..<entries.count
    }
  }

  /// Returns `true` if `name`, in any case, is one of the names or begins with one of the prefixes.
  func contains(_ name: UnsafeBufferPointer<UInt8>) -> Bool {
    guard let first = name.first else { return false }
    return entries[places[Int(Self.lowercase(first))]].contains { entry in
      guard entry.isPrefix ? name.count >= entry.length : name.count == entry.length else { return false }
      return (0..<entry.length).allSatisfy { bytes[entry.start + $0] == Self.lowercase(name[$0]) }
    }
  }

  private static func lowercase(_ byte: UInt8) -> UInt8 {
    (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte
  }
}
