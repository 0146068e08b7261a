/// A request target in origin form (RFC 9112 section 3.2.1), taken apart.
struct RequestTarget: Sendable, Hashable {
  /// As sent.
  let text: String
  /// The path in its normal form: escapes of unreserved characters decoded, other escapes with capital digits.
  let path: String
  /// What follows the first question mark, as sent; `nil` without a question mark.
  let query: String?

  /// Takes apart the bytes of a target that a `HeadScanner` has gone over: it begins with a slash, is ASCII, and its
  /// escapes are whole.
  ///
  /// A path whose meaning depends on the reader is refused: dot segments, empty segments, escaped slashes,
  /// backslashes and control characters.
  init(scanned bytes: UnsafeBufferPointer<UInt8>.SubSequence) throws(HeadFault) {
    let mark = bytes.firstIndex(of: .questionMark)
    let path = try Self.unescaped(bytes[..<(mark ?? bytes.endIndex)])
    try Self.check(path[...])
    text = String(decoding: bytes, as: UTF8.self)
    self.path = String(decoding: path, as: UTF8.self)
    query = mark.map { String(decoding: bytes[$0...].dropFirst(), as: UTF8.self) }
  }

  private static func unescaped(_ path: UnsafeBufferPointer<UInt8>.SubSequence) throws(HeadFault) -> [UInt8] {
    var result: [UInt8] = []
    result.reserveCapacity(path.count)
    var rest = path
    while let byte = rest.popFirst() {
      guard byte == .percent, let high = rest.popFirst()?.hexDigitValue, let low = rest.popFirst()?.hexDigitValue
      else {
        result.append(byte)
        continue
      }
      let value = high << 4 | low
      if value < 0x20 || value == 0x7F { throw .escapedControl }
      if value == .slash || value == UInt8(ascii: "\\") { throw .escapedSeparator }
      if ByteSet.unreserved.contains(value) {
        result.append(value)
      } else {
        result.append(contentsOf: [.percent, capitalDigit(high), capitalDigit(low)])
      }
    }
    return result
  }

  private static func capitalDigit(_ value: UInt8) -> UInt8 {
    value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "A") + value - 10
  }

  private static func check(_ path: ArraySlice<UInt8>) throws(HeadFault) {
    // What stands before the first slash is empty, and what stands behind the last one may be.
    var rest = path.dropFirst()
    while !rest.isEmpty {
      let segment = rest.prefix { $0 != .slash }
      if segment.isEmpty { throw .emptySegment }
      // Some servers cut parameters off before they resolve dot segments: to them `/a/..;x/b` is `/b`.
      let name = segment.prefix { $0 != UInt8(ascii: ";") }
      if name.elementsEqual([UInt8(ascii: ".")]) || name.elementsEqual([UInt8(ascii: "."), UInt8(ascii: ".")]) {
        throw .dotSegment
      }
      rest = rest[segment.endIndex...].dropFirst()
    }
  }
}
