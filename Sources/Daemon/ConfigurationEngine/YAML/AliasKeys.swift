/// Keys that are lists, sections or aliases, in texts with many aliases.
///
/// Yams hashes each key. A key that is an alias of aliases is expanded for that, before the nodes of the document can
/// be counted: 350 bytes become 9^10 nodes. No configuration has such a key, so a text with many aliases is refused as
/// soon as it may have one. The scan does not know quotes and comments: it finds too much rather than too little.
enum AliasKeys {
  /// Together these make at most 3^7 nodes of one.
  private static let mostAliases = 20

  /// The place of the first such key; `nil` if there is none, or if there are few aliases.
  static func firstExpensive(in text: String) -> YAMLDocument.Position? {
    let bytes = Array(text.utf8)
    var aliases = 0
    var key: Int?
    for index in bytes.indices {
      let next = index + 1 < bytes.count ? bytes[index + 1] : UInt8(ascii: "\n")
      switch bytes[index] {
      case UInt8(ascii: "*") where !isBlank(next) && beginsToken(at: index, in: bytes): aliases += 1
      case UInt8(ascii: "?") where isBlank(next) && beginsToken(at: index, in: bytes): key = key ?? index
      case UInt8(ascii: ":") where endsOtherKey(before: index, in: bytes): key = key ?? index
      default: break
      }
    }
    guard let key, aliases > mostAliases else { return nil }
    let lines = bytes[..<key].split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
    let column = String(decoding: lines.last ?? [], as: UTF8.self).unicodeScalars.count + 1
    return YAMLDocument.Position(line: max(1, lines.count), column: column)
  }

  private static func isBlank(_ byte: UInt8) -> Bool { [0x20, 0x09, 0x0A, 0x0D].contains(byte) }

  private static func beginsToken(at index: Int, in bytes: [UInt8]) -> Bool {
    index == 0 || isBlank(bytes[index - 1]) || "[{,?:-".utf8.contains(bytes[index - 1])
  }

  /// Whether what stands before the colon at `index` ends a list or a section, or is an alias.
  private static func endsOtherKey(before index: Int, in bytes: [UInt8]) -> Bool {
    var end = index
    while end > 0, bytes[end - 1] == 0x20 || bytes[end - 1] == 0x09 { end -= 1 }
    guard end > 0 else { return false }
    if bytes[end - 1] == UInt8(ascii: "]") || bytes[end - 1] == UInt8(ascii: "}") { return true }
    var start = end
    // The name of an alias is as short as its anchor; what is longer is none that a person wrote.
    while start > 0, end - start < 256, !isBlank(bytes[start - 1]), !",[]{}:".utf8.contains(bytes[start - 1]) {
      start -= 1
    }
    return bytes[start] == UInt8(ascii: "*") || end - start == 256
  }
}
