/// Scans the bytes of a message head and checks its lines, without interpreting them and without allocation.
///
/// It scans from left to right and stops at the first invalid byte. So the result does not depend on how many later
/// bytes have already arrived: the same head always gets the same fault.
///
/// The scanning methods return `false` if the bytes end before the part does.
struct HeadScanner {
  private let bytes: UnsafeBufferPointer<UInt8>
  private let limits: HeadLimits
  /// The index at which scanning stops; within `bytes`.
  private let end: Int
  /// The index of the next byte; at most `end`.
  private var position = 0

  /// The maximum length of a method.
  private static let maxMethod = 32

  init(_ bytes: UnsafeBufferPointer<UInt8>, limits: HeadLimits) {
    self.bytes = bytes
    self.limits = limits
    end = min(bytes.count, limits.bytes)
  }

  /// The position of a valid head.
  struct Extent: Sendable, Hashable {
    /// The range of the field lines, without the empty line.
    let fields: Range<Int>
    /// The total length in bytes, including the empty line.
    let length: Int
  }

  /// Returns the extent of a request head; `nil` while the head is incomplete and valid so far.
  mutating func request() throws(HeadError) -> Extent? {
    guard try requestLine() else { return try outOfBytes() }
    return try fieldLines()
  }

  /// Returns the extent of a response head; `nil` while the head is incomplete and valid so far.
  mutating func response() throws(HeadError) -> Extent? {
    guard try statusLine() else { return try outOfBytes() }
    return try fieldLines()
  }

  private func outOfBytes() throws(HeadError) -> Extent? {
    if end == limits.bytes { throw .headLength }
    return nil
  }

  private var next: UInt8? {
    @inline(__always) get { position < end ? bytes[position] : nil }
  }

  /// Scans `text`; throws `fault` at any other byte.
  private mutating func literal(_ text: StaticString, else fault: HeadError) throws(HeadError) -> Bool {
    let text = UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
    for expected in text {
      guard let byte = next else { return false }
      if byte != expected { throw fault }
      position += 1
    }
    return true
  }
}

// MARK: - First lines

extension HeadScanner {
  /// Scans `method SP request-target SP HTTP-version CRLF` (RFC 9112 section 3).
  private mutating func requestLine() throws(HeadError) -> Bool {
    guard try method(), try target(), try literal("HTTP/1.1", else: .version), try literal("\r\n", else: .lineEnd)
    else { return false }
    return true
  }

  private mutating func method() throws(HeadError) -> Bool {
    while let byte = next {
      if byte == .space, position > 0 {
        position += 1
        return true
      }
      guard ByteSet.token.contains(byte) else { throw position == 0 ? .firstByte : .method }
      if position == Self.maxMethod { throw .method }
      position += 1
    }
    return false
  }

  private mutating func target() throws(HeadError) -> Bool {
    guard try literal("/", else: .targetForm) else { return false }
    var allowed = ByteSet.path
    while let byte = next {
      if allowed.contains(byte) {
        position += 1
        continue
      }
      position += 1
      switch byte {
      case .space: return true
      case .questionMark: allowed = .query
      case .percent: guard try hexDigit(), try hexDigit() else { return false }
      case .carriageReturn, .lineFeed: throw .version
      default: throw .targetCharacter
      }
    }
    return false
  }

  private mutating func hexDigit() throws(HeadError) -> Bool {
    guard let byte = next else { return false }
    if byte.hexDigitValue == nil { throw .targetEscape }
    position += 1
    return true
  }

  /// Scans `HTTP-version SP status-code SP [ reason-phrase ] CRLF` (RFC 9112 section 4) for HTTP/1.0 and HTTP/1.1.
  private mutating func statusLine() throws(HeadError) -> Bool {
    guard try literal("HTTP/1.", else: .statusLine), let minor = next else { return false }
    if minor != UInt8(ascii: "1"), minor != UInt8(ascii: "0") { throw .statusLine }
    position += 1
    guard try literal(" ", else: .statusLine), let hundreds = next else { return false }
    guard (UInt8(ascii: "1")...UInt8(ascii: "5")).contains(hundreds) else { throw .status }
    position += 1
    for _ in 0..<2 {
      guard let digit = next else { return false }
      guard digit.isDigit else { throw .status }
      position += 1
    }
    guard try literal(" ", else: .statusLine) else { return false }
    return try content()
  }
}

// MARK: - Field lines

extension HeadScanner {
  /// Scans `*( field-line CRLF ) CRLF` (RFC 9112 section 2.1).
  private mutating func fieldLines() throws(HeadError) -> Extent? {
    let start = position
    var count = 0
    while let byte = next {
      if byte == .carriageReturn {
        let fields = start..<position
        guard try literal("\r\n", else: .lineEnd) else { break }
        return Extent(fields: fields, length: position)
      }
      if count == limits.fields { throw .fieldCount }
      count += 1
      guard try fieldName(), try content() else { break }
    }
    return try outOfBytes()
  }

  /// Scans `field-name ":"` (RFC 9112 section 5.1).
  private mutating func fieldName() throws(HeadError) -> Bool {
    let start = position
    while let byte = next {
      if ByteSet.token.contains(byte) {
        position += 1
        continue
      }
      let isFirst = position == start
      position += 1
      switch byte {
      case .colon: if isFirst { throw .fieldNameMissing } else { return true }
      case .space, .tab: throw isFirst ? .foldedLine : .spaceBeforeColon
      case .lineFeed where isFirst: throw .lineEnd
      case .carriageReturn, .lineFeed: throw .colonMissing
      default: throw .fieldName
      }
    }
    return false
  }

  /// Scans a field value or a reason phrase, and the end of its line.
  private mutating func content() throws(HeadError) -> Bool {
    while let byte = next {
      if byte.isFieldContent {
        position += 1
        continue
      }
      switch byte {
      case .carriageReturn: return try literal("\r\n", else: .lineEnd)
      case .lineFeed: throw .lineEnd
      default: throw .fieldValue
      }
    }
    return false
  }
}
