/// Numbers as decimal digits.
enum DecimalDigits {
  /// Appends `number` to `bytes`.
  static func append(_ number: UInt64, to bytes: inout [UInt8]) {
    withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 20) { text in
      var end = 0
      write(number, width: 1, to: text, at: &end)
      bytes.append(contentsOf: UnsafeBufferPointer(rebasing: text[..<end]))
    }
  }

  /// Writes `number` in at least `width` digits (20 at most) at `place` of `text`, which must have room for them, and
  /// moves `place` behind them.
  static func write(
    _ number: UInt64, width: Int, to text: UnsafeMutableBufferPointer<UInt8>, at place: inout Int
  ) {
    var count = 1
    var rest = number / 10
    while rest > 0 {
      count += 1
      rest /= 10
    }
    count = max(count, width)
    rest = number
    var next = place + count
    place = next
    for _ in 0..<count {
      next -= 1
      text[next] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10)
      rest /= 10
    }
  }
}
