/// Cuts bytes into pieces like a network.
struct Pieces: Sequence, IteratorProtocol {
  private var rest: ArraySlice<UInt8>
  private var state: UInt8

  /// `pattern` decides where the bytes are cut: the same pattern cuts at the same places. 0 means one byte at a time.
  init(of bytes: [UInt8], pattern: UInt8) {
    rest = bytes[...]
    state = pattern
  }

  /// Returns the next piece, which is never empty.
  mutating func next() -> [UInt8]? {
    if rest.isEmpty { return nil }
    // A small generator with a period of 256, or the constant 0.
    let length = state == 0 ? 1 : 1 + Int(state & 0x1F)
    if state != 0 { state = state &* 5 &+ 1 | 1 }
    defer { rest = rest.dropFirst(length) }
    return Array(rest.prefix(length))
  }
}

extension [UInt8] {
  /// The lengths of the prefixes to check: all of a short input, about fifty of a long one, and the last two.
  var prefixLengths: [Int] {
    let step = Swift.max(1, count / 48)
    return [Int](stride(from: 0, to: count, by: step)) + [count - 1, count].filter { $0 >= 0 }
  }

  /// The number of places at which `pattern` occurs.
  func occurrences(of pattern: String) -> Int {
    let pattern = Array(pattern.utf8)
    guard count >= pattern.count else { return 0 }
    return (0...count - pattern.count).count { self[$0..<$0 + pattern.count].elementsEqual(pattern) }
  }
}
