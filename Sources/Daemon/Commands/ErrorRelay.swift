internal import ByteCoding

/// Makes the standard error of another program fit for that of this one, where a terminal or a log shows it: control and
/// format characters are replaced, and a bounded part of it is kept.
struct ErrorRelay {
  /// The most that is passed on, in bytes.
  static let most = 64 << 10

  private var room = Self.most
  /// The begin of a character whose other bytes have not arrived.
  private var tail: [UInt8] = []

  /// Whether nothing more is shown.
  var isFull: Bool { room == 0 }

  /// Returns what to show of further `bytes`.
  mutating func text(of bytes: ArraySlice<UInt8>) -> String {
    guard room > 0 else { return "" }
    var whole = tail + bytes.prefix(room)
    room -= min(room, bytes.count)
    guard room > 0 else { return Self.shown(whole) + "\n(the program's further messages are not shown)\n" }
    let count = Self.countOfIncomplete(whole)
    tail = Array(whole.suffix(count))
    whole.removeLast(count)
    return Self.shown(whole)
  }

  /// Returns what to show at the end.
  mutating func end() -> String {
    defer { tail = [] }
    return room > 0 ? Self.shown(tail) : ""
  }

  private static func shown(_ bytes: [UInt8]) -> String {
    TerminalText.printableLines(String(decoding: bytes, as: UTF8.self))
  }

  /// The number of bytes at the end that begin a character of UTF-8 without completing it.
  private static func countOfIncomplete(_ bytes: [UInt8]) -> Int {
    for (count, byte) in bytes.reversed().prefix(3).enumerated() where byte & 0xC0 != 0x80 {
      let length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1
      return length > count + 1 ? count + 1 : 0
    }
    return 0
  }
}
