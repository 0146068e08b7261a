/// The parts of a request target in origin form (RFC 9112 section 3.2.1).
struct RequestTarget: Sendable, Hashable {
  /// As sent, without the scheme and the authority of an absolute target.
  let text: String
  /// The path in normal form: escapes of unreserved characters are decoded, other escapes have uppercase digits, and
  /// characters that RFC 3986 does not allow in a path are escaped.
  let path: String
  /// The part after the first question mark, as sent; `nil` without a question mark.
  let query: String?

  /// Parses a target that a `HeadScanner` has checked: it begins with a slash, is ASCII, and
  /// its escapes are complete.
  ///
  /// A path that servers could read differently is refused: dot segments, empty segments, escaped
  /// slashes, backslashes and control characters, and escapes that decode to invalid UTF-8 or to another
  /// escape. The query is not checked.
  ///
  /// - Parameter unread: The beginning of paths whose rest is not checked: it becomes `path`, and there is no query.
  /// - Throws: `HeadError` with the rule that the path violates.
  init(scanned bytes: UnsafeBufferPointer<UInt8>.SubSequence, unread: StaticString? = nil) throws(HeadError) {
    if let unread, unread.begins(bytes) {
      text = String(decoding: bytes, as: UTF8.self)
      path = unread.description
      query = nil
      return
    }
    let mark = bytes.firstIndex(of: .questionMark)
    let path = try Self.normalForm(bytes[..<(mark ?? bytes.endIndex)])
    text = String(decoding: bytes, as: UTF8.self)
    self.path = String(decoding: path, as: UTF8.self)
    query = mark.map { String(decoding: bytes[$0...].dropFirst(), as: UTF8.self) }
  }

  /// Splits an absolute target, which a `HeadScanner` has checked, into its authority and the same target in origin form.
  ///
  /// - Throws: Also `HeadError.targetAuthority`.
  static func absolute(
    _ bytes: UnsafeBufferPointer<UInt8>.SubSequence, unread: StaticString?
  ) throws(HeadError) -> (authority: UnsafeBufferPointer<UInt8>, target: RequestTarget) {
    let rest = bytes.dropFirst("https://".utf8.count)
    let authority = UnsafeBufferPointer(rebasing: rest.prefix { $0 != .slash && $0 != .questionMark })
    guard Authority.isValid(authority) else { throw .targetAuthority }
    let origin = rest.dropFirst(authority.count)
    if origin.first == .slash { return (authority, try RequestTarget(scanned: origin, unread: unread)) }
    // An empty path means the root (RFC 9110 section 4.2.3).
    let rooted = [.slash] + origin
    let target = try rooted.withUnsafeBufferPointer { rooted throws(HeadError) in
      try RequestTarget(scanned: rooted[...], unread: unread)
    }
    return (authority, target)
  }

  private static func normalForm(_ path: UnsafeBufferPointer<UInt8>.SubSequence) throws(HeadError) -> [UInt8] {
    guard path.contains(where: { !ByteSet.path.contains($0) }) else {
      try checkSegments(path)
      return Array(path)
    }
    var normal: [UInt8] = []
    var decoded: [UInt8] = []
    normal.reserveCapacity(path.count)
    decoded.reserveCapacity(path.count)
    var rest = path
    while let byte = rest.popFirst() {
      guard byte == .percent, let high = rest.popFirst()?.hexDigitValue, let low = rest.popFirst()?.hexDigitValue
      else {
        decoded.append(byte)
        if ByteSet.path.contains(byte) { normal.append(byte) } else { normal += escape(of: byte) }
        continue
      }
      let value = high << 4 | low
      if value == .slash || value == UInt8(ascii: "\\") { throw .escapedSeparator }
      decoded.append(value)
      if ByteSet.unreserved.contains(value) { normal.append(value) } else { normal += escape(of: value) }
    }
    try checkCharacters(decoded)
    try checkSegments(decoded)
    return normal
  }

  private static func escape(of byte: UInt8) -> [UInt8] {
    [.percent, capitalDigit(byte >> 4), capitalDigit(byte & 15)]
  }

  private static func capitalDigit(_ value: UInt8) -> UInt8 {
    value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "A") + value - 10
  }

  private static func checkCharacters(_ decoded: [UInt8]) throws(HeadError) {
    if decoded.contains(where: { $0 < 0x20 || $0 == 0x7F }) { throw .escapedControl }
    // Lenient decoders read bytes that are not UTF-8, such as the overlong C0 AE, as dots and slashes.
    guard let text = String(validating: decoded, as: UTF8.self) else { throw .escapedEncoding }
    if text.unicodeScalars.contains(where: { (0x80...0x9F).contains($0.value) }) { throw .escapedControl }
    // A server that decodes twice reads `/admin` in `/%2561dmin`, but routes do not.
    var rest = decoded[...]
    while let percent = rest.firstIndex(of: .percent) {
      rest = rest[percent...].dropFirst()
      if rest.prefix(2).count == 2, rest.prefix(2).allSatisfy({ $0.hexDigitValue != nil }) { throw .doubleEscape }
    }
  }

  private static func checkSegments(_ path: some Collection<UInt8>) throws(HeadError) {
    // The part before the first slash is empty. The part after the last one may be empty.
    var rest = path.dropFirst()
    while !rest.isEmpty {
      let segment = rest.prefix { $0 != .slash }
      if segment.isEmpty { throw .emptySegment }
      // Some servers remove parameters before they resolve dot segments: they read `/a/..;x/b` as `/b`. Servers that
      // decode first find a query or a fragment in `/a/..%3Fx` and `/a/..%23x`.
      let name = segment.prefix { $0 != UInt8(ascii: ";") && $0 != .questionMark && $0 != UInt8(ascii: "#") }
      if name.elementsEqual([UInt8(ascii: ".")]) || name.elementsEqual([UInt8(ascii: "."), UInt8(ascii: ".")]) {
        throw .dotSegment
      }
      rest = rest[segment.endIndex...].dropFirst()
    }
  }
}

extension StaticString {
  /// Whether `bytes` begin with this text.
  func begins(_ bytes: UnsafeBufferPointer<UInt8>.SubSequence) -> Bool {
    bytes.starts(with: UnsafeBufferPointer(start: utf8Start, count: utf8CodeUnitCount))
  }
}
