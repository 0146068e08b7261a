/// Undoes the chunked transfer coding (RFC 9112 section 7.1) as the bytes arrive.
///
/// What comes beside the data, chunk extensions and trailer fields, is either refused or dropped: nothing here means
/// anything by it, and other readers have been led astray by both.
struct ChunkedBody: Sendable {
  /// What is done about chunk extensions (RFC 9112 section 7.1.1) and trailer fields (section 7.1.2).
  enum Extras: Sendable {
    /// From clients: an honest one sends no extensions, and what follows could be read as another client's request.
    case refused
    /// From upstreams, which may send them: at most 4 KiB of extensions a chunk and 16 KiB of trailers are read and
    /// dropped. The body is framed again, so that the client does not read them either.
    case dropped
  }

  private enum State: Sendable {
    case size(digits: Int)
    /// Space in front of an extension's semicolon.
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
  /// The size of the current chunk while it is read, then what of its data is missing.
  private var missing = 0
  /// What the body may still grow by, the current chunk already counted.
  private var room: Int

  /// Bytes of trailer fields so far.
  private var trailerLength = 0
  /// Bytes of the current chunk's extensions so far.
  private var extensionLength = 0

  private static let maxDigits = 16
  private static let maxExtensions = 4 << 10
  private static let maxTrailers = 16 << 10

  /// - Parameter limit: the greatest length of the body, without the coding.
  init(limit: Int, extras: Extras) {
    self.limit = limit
    self.extras = extras
    room = limit
  }

  /// Whether the last chunk has been read.
  var isComplete: Bool {
    if case .complete = state { true } else { false }
  }

  /// Appends to `body` what the next `bytes` carry, and gives how many of them belong to the coding: all, until the
  /// body is complete.
  ///
  /// The outcome does not depend on how the bytes are cut into calls. After a fault the value is of no further use.
  mutating func feed(_ bytes: UnsafeBufferPointer<UInt8>, into body: inout [UInt8]) throws(BodyFault) -> Int {
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

  private mutating func advance(over byte: UInt8) throws(BodyFault) {
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
      // `feed` takes these states itself.
      break
    }
  }

  private mutating func size(_ byte: UInt8, digits: Int) throws(BodyFault) {
    if let value = byte.hexDigitValue {
      if digits == Self.maxDigits { throw .malformed(.sizeDigits) }
      let available = room + missing
      // `missing` is at most `limit` here: sixteen times that cannot be reached without the check before.
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

  /// `*( BWS ";" BWS chunk-ext-name [ … ] )`: a semicolon, and then whatever may stand in a line. A line break or another
  /// control character never may, not in a quoted string either: there readers would differ about where the line ends.
  private mutating func `extension`(_ byte: UInt8) throws(BodyFault) {
    if case .extension = state, byte == .carriageReturn {
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

  private func expect(_ byte: UInt8, _ expected: UInt8, else fault: ChunkFault) throws(BodyFault) {
    if byte != expected { throw .malformed(fault) }
  }
}
