/// Divides what a terminal sends into keys. Keys that are pressed quickly, or pasted, arrive together.
struct KeyReader {
  /// The beginning of a key whose end has not arrived yet.
  private var pending: [UInt8] = []

  /// The keys in `bytes`: each control character and each control sequence by itself, and text in one piece.
  ///
  /// An escape that nothing follows is the key of that name. One that another character follows is that key and another
  /// one: the list has no keys with Alt.
  mutating func keys(in bytes: [UInt8]) -> [[UInt8]] {
    let bytes = pending + bytes
    pending = []
    var keys: [[UInt8]] = []
    var start = 0
    while start < bytes.count {
      guard let end = Self.end(of: start, in: bytes) else {
        pending = Array(bytes[start...])
        break
      }
      keys.append(Array(bytes[start..<end]))
      start = end
    }
    // A sequence that never ends is none.
    if pending.count > 64 { pending = [] }
    return keys
  }

  /// The end of the key that begins at `start`; `nil` if it has not arrived.
  private static func end(of start: Int, in bytes: [UInt8]) -> Int? {
    guard bytes[start] != 0x1B else { return endOfEscape(start, in: bytes) }
    guard bytes[start] >= 0x20, bytes[start] != 0x7F else { return start + 1 }
    let end = bytes[start...].firstIndex { $0 < 0x20 || $0 == 0x7F } ?? bytes.count
    guard end == bytes.count else { return end }
    // A character of several bytes may be cut off.
    var last = end - 1
    while last > start, bytes[last] & 0xC0 == 0x80 { last -= 1 }
    let length = bytes[last] >= 0xF0 ? 4 : bytes[last] >= 0xE0 ? 3 : bytes[last] >= 0xC0 ? 2 : 1
    guard last + length > end else { return end }
    return last > start ? last : nil
  }

  /// The end of a control sequence (ECMA-48 section 5.4), or of a key of the keypad.
  private static func endOfEscape(_ start: Int, in bytes: [UInt8]) -> Int? {
    guard start + 1 < bytes.count else { return start + 1 }
    switch bytes[start + 1] {
    case UInt8(ascii: "O"): return start + 2 < bytes.count ? start + 3 : nil
    case UInt8(ascii: "["):
      let end = bytes[(start + 2)...].firstIndex { !(0x20...0x3F).contains($0) }
      return end.map { $0 + 1 }
    default: return start + 1
    }
  }
}
