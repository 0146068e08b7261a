/// Decodes the chunked transfer coding (RFC 9112 section 7.1) as the bytes arrive.
///
/// Chunk extensions and trailer fields are either refused or dropped: the gate does not use them, and attackers have
/// used both to confuse other readers.
struct ChunkedBody: Sendable {
  /// How chunk extensions (RFC 9112 section 7.1.1) and trailer fields (section 7.1.2) are handled.
  enum Extras: Sendable {
    /// For clients: honest ones send none, and the bytes after them could be a smuggled request.
    case refused
    /// For upstreams, which may send them: at most 4 KiB of extensions per chunk and 16 KiB of trailers are read and
    /// dropped. The body gets a new framing, so that no later reader sees them.
    case dropped
  }

  private enum State: Sendable {
    case size(digits: Int)
    /// White space before an extension's semicolon.
    case extensionSpace
    case `extension`
    case sizeEnd
    case data
    case dataEnd
    case dataEndLineFeed
    case lastEnd
    case lastEndLineFeed
    case trailer
    case complete
  }

  private let limit: Int
  private let extras: Extras
  private var state = State.size(digits: 0)
  /// The size of the current chunk while it is read, then the number of its bytes that are missing.
  private var missing = 0
  /// The number of bytes by which the body may still grow, after the current chunk.
  private var room: Int

  /// The number of bytes of trailer fields so far.
  private var trailerLength = 0
  /// The number of bytes of the current chunk's extensions so far.
  private var extensionLength = 0

  private static let maxDigits = 16
  private static let maxExtensions = 4 << 10
  private static let maxTrailers = 16 << 10

  /// - Parameter limit: The maximum length of the body, without the coding.
  init(limit: Int, extras: Extras) {
    self.limit = limit
    self.extras = extras
    room = limit
  }

  /// Whether the last chunk has been read.
  var isComplete: Bool {
    if case .complete = state { true } else { false }
  }

  /// Decodes `bytes` and appends the data to `body`. Returns the number of bytes that belong to the coding: all of
  /// them, until the body is complete.
  ///
  /// The result does not depend on how the bytes are split into calls. After an error the value
  /// must not be used again.
  ///
  /// - Throws: `BodyError.tooLarge` or `.malformed`.
  mutating func feed(_ bytes: UnsafeBufferPointer<UInt8>, into body: inout [UInt8]) throws(BodyError) -> Int {
    var position = 0
    while position < bytes.count, !isComplete {
      if case .data = state {
        let count = min(missing, bytes.count - position)
        body.append(contentsOf: bytes[position..<(position + count)])
        position += count
        missing -= count
        if missing == 0 { state = .dataEnd }
      } else {
        try advance(over: bytes[position])
        position += 1
      }
    }
    return position
  }

  private mutating func advance(over byte: UInt8) throws(BodyError) {
    switch state {
    case .size(let digits): try size(byte, digits: digits)
    case .extensionSpace, .extension: try `extension`(byte)
    case .sizeEnd:
      try expect(byte, .lineFeed, else: .lineEnd)
      state = missing == 0 ? .lastEnd : .data
    case .dataEnd:
      try expect(byte, .carriageReturn, else: .dataEnd)
      state = .dataEndLineFeed
    case .dataEndLineFeed:
      try expect(byte, .lineFeed, else: .dataEnd)
      state = .size(digits: 0)
    case .lastEnd:
      if byte != .carriageReturn, extras == .dropped {
        state = .trailer
        trailerLength += 1
        return
      }
      try expect(byte, .carriageReturn, else: .trailer)
      state = .lastEndLineFeed
    case .trailer:
      trailerLength += 1
      if trailerLength > Self.maxTrailers { throw .malformed(.trailer) }
      if byte == .lineFeed { state = .lastEnd }
    case .lastEndLineFeed:
      try expect(byte, .lineFeed, else: .trailer)
      state = .complete
    case .data, .complete:
      // `feed` handles these states itself.
      break
    }
  }

  private mutating func size(_ byte: UInt8, digits: Int) throws(BodyError) {
    if let value = byte.hexDigitValue {
      if digits == Self.maxDigits { throw .malformed(.sizeDigits) }
      let available = room + missing
      // `missing` is at most `limit`, which may be `Int.max`, so the product may overflow.
      let (product, overflows) = missing.multipliedReportingOverflow(by: 16)
      guard !overflows, product <= available - Int(value) else { throw .tooLarge(limit: limit) }
      missing = product + Int(value)
      room = available - missing
      state = .size(digits: digits + 1)
      return
    }
    if digits == 0 { throw .malformed(.size) }
    switch byte {
    case .carriageReturn: state = .sizeEnd
    case UInt8(ascii: ";"), .space, .tab:
      if extras == .refused { throw .malformed(.extension) }
      extensionLength = 0
      state = .extensionSpace
      try `extension`(byte)
    default: throw .malformed(.lineEnd)
    }
  }

  /// Reads `*( BWS ";" BWS chunk-ext-name [ … ] )`: a semicolon, then any characters that are allowed in a line.
  /// Line breaks and other control characters are refused even in quoted strings, because readers would disagree
  /// about the end of the line.
  private mutating func `extension`(_ byte: UInt8) throws(BodyError) {
    // White space alone, too: some servers fill the size up to a fixed width.
    if byte == .carriageReturn {
      state = .sizeEnd
      return
    }
    extensionLength += 1
    if extensionLength > Self.maxExtensions { throw .malformed(.extensionForm) }
    switch (state, byte) {
    case (.extensionSpace, .space), (.extensionSpace, .tab): break
    case (.extensionSpace, UInt8(ascii: ";")): state = .extension
    case (.extension, _) where byte.isFieldContent: break
    case (_, .lineFeed): throw .malformed(.lineEnd)
    default: throw .malformed(.extensionForm)
    }
  }

  private func expect(_ byte: UInt8, _ expected: UInt8, else fault: ChunkError) throws(BodyError) {
    if byte != expected { throw .malformed(fault) }
  }
}
