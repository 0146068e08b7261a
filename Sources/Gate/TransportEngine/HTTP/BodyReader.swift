/// Collects a bounded body as it arrives.
struct BodyReader: Sendable {
  private enum Source: Sendable {
    /// What is missing.
    case counted(Int)
    case chunked(ChunkedBody)
    case untilClose
    case ended
  }

  /// What has arrived so far, at most the limit.
  private(set) var body: [UInt8] = []
  private let limit: Int
  private var source: Source

  /// - Parameters:
  ///   - limit: the greatest length of the body; one that says it is longer is refused before it is read.
  ///   - extras: what is done about what a chunked body has beside its data.
  init(_ framing: BodyFraming, limit: Int, extras: ChunkedBody.Extras) throws(BodyFault) {
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

  /// Takes what of `bytes` belongs to the body and gives how many bytes that is: all, until the body is complete.
  mutating func feed(_ bytes: UnsafeBufferPointer<UInt8>) throws(BodyFault) -> Int {
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

  /// The connection has ended: completes a body that ends with it, and is a fault inside any other.
  mutating func connectionEnded() throws(BodyFault) {
    switch source {
    case .ended: return
    case .untilClose: source = .ended
    case .counted, .chunked: throw .endedEarly
    }
  }
}
