/// Numbers as decimal digits.
enum DecimalDigits {
  /// Appends `mark`, if there is one, and `number` in at least `width` digits (20 at most).
  static func append(_ number: UInt64, width: Int, after mark: Unicode.Scalar? = nil, to bytes: inout [UInt8]) {
    if let mark { bytes.append(UInt8(ascii: mark)) }
    withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 20) { digits in
      var rest = number
      var start = 20
      // A 64-bit number has at most 20 digits, so `start` stays at least 0.
      while start > 0, rest > 0 || 20 - start < width {
        start -= 1
        digits[start] = UInt8(ascii: "0") + UInt8(rest % 10)
        rest /= 10
      }
      bytes.append(contentsOf: UnsafeBufferPointer(rebasing: digits[start...]))
    }
  }
}
