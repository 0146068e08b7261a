/// Collects a body of bounded length as it arrives.
struct BodyReader: Sendable {
  private enum Source: Sendable {
    /// The number of missing bytes.
    case counted(Int)
    case chunked(ChunkedBody)
    case untilClose
    case ended
  }

  /// The bytes so far, at most `limit`.
  private(set) var body: [UInt8] = []
  private let limit: Int
  private var source: Source

  /// - Parameters:
  ///   - limit: The maximum length of the body. A body that announces more is refused before it is read.
  ///   - extras: How chunk extensions and trailer fields are handled.
  /// - Throws: `BodyError.tooLarge` if the declared length is over the limit.
  init(_ framing: BodyFraming, limit: Int, extras: ChunkedBody.Extras) throws(BodyError) {
    self.limit = limit
    switch framing {
    case .none, .length(0): source = .ended
    case .length(let length):
      if length > limit { throw .tooLarge(limit: limit) }
      source = .counted(length)
    case .chunked: source = .chunked(ChunkedBody(limit: limit, extras: extras))
    case .untilClose: source = .untilClose
    }
  }

  var isComplete: Bool {
    if case .ended = source { true } else { false }
  }

  /// Consumes the part of `bytes` that belongs to the body and returns its length: all of them,
  /// until the body is complete.
  ///
  /// - Throws: `BodyError` if the body is malformed or too large.
  mutating func feed(_ bytes: UnsafeBufferPointer<UInt8>) throws(BodyError) -> Int {
    switch source {
    case .ended:
      return 0
    case .counted(let missing):
      let count = min(missing, bytes.count)
      body.append(contentsOf: bytes[..<count])
      source = count == missing ? .ended : .counted(missing - count)
      return count
    case .chunked(var decoder):
      let count = try decoder.feed(bytes, into: &body)
      source = decoder.isComplete ? .ended : .chunked(decoder)
      return count
    case .untilClose:
      if bytes.count > limit - body.count { throw .tooLarge(limit: limit) }
      body.append(contentsOf: bytes)
      return bytes.count
    }
  }

  /// Handles the end of the connection. It completes a body that ends with the connection.
  ///
  /// - Throws: `BodyError.endedEarly` inside any other body.
  mutating func connectionEnded() throws(BodyError) {
    switch source {
    case .ended: return
    case .untilClose: source = .ended
    case .counted, .chunked: throw .endedEarly
    }
  }
}
