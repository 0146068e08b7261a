/// Converts a body from one message's framing to another's as it arrives. It stores nothing.
struct BodyPipe: Sendable {
  private enum Source: Sendable {
    /// The number of missing bytes.
    case counted(Int)
    case chunked(ChunkedBody)
    case untilClose
    case ended
  }

  /// How the body is framed in the outgoing message.
  enum Target: Sendable, Hashable {
    /// Unchanged: its length is declared in the head.
    case plain
    case chunked
  }

  private var source: Source
  private let target: Target
  private let limit: Int
  /// The number of body bytes so far, without any coding.
  private(set) var count = 0

  /// - Parameters:
  ///   - limit: The maximum length of the body. A body that announces more is refused before it is read.
  ///   - extras: How chunk extensions and trailer fields are handled.
  /// - Throws: `BodyError.tooLarge` if the declared length is over the limit.
  init(
    _ framing: BodyFraming, limit: Int = .max, extras: ChunkedBody.Extras
  ) throws(BodyError) {
    self.limit = limit
    switch framing {
    case .none, .length(0): (source, target) = (.ended, .plain)
    case .length(let length):
      if length > limit { throw .tooLarge(limit: limit) }
      (source, target) = (.counted(length), .plain)
    case .chunked: (source, target) = (.chunked(ChunkedBody(limit: limit, extras: extras)), .chunked)
    case .untilClose: (source, target) = (.untilClose, .chunked)
    }
  }

  var isComplete: Bool { if case .ended = source { true } else { false } }

  /// Appends the part of `bytes` that belongs to the body to `output`, in the new framing. Returns the number of
  /// bytes it consumed: all of them, until the body is complete.
  ///
  /// - Throws: `BodyError` if the body is malformed or too large.
  mutating func feed(_ bytes: UnsafeBufferPointer<UInt8>, into output: inout [UInt8]) throws(BodyError) -> Int {
    switch source {
    case .ended:
      return 0
    case .counted(let missing):
      let taken = min(missing, bytes.count)
      write(Array(bytes[..<taken]), into: &output)
      source = taken == missing ? .ended : .counted(missing - taken)
      return taken
    case .chunked(var decoder):
      var data: [UInt8] = []
      let taken = try decoder.feed(bytes, into: &data)
      write(data, into: &output)
      source = .chunked(decoder)
      if decoder.isComplete { end(&output) }
      return taken
    case .untilClose:
      if bytes.count > limit - count { throw .tooLarge(limit: limit) }
      write(Array(bytes), into: &output)
      return bytes.count
    }
  }

  /// Handles a regular end of the connection. It completes a body that ends with the connection.
  ///
  /// - Throws: `BodyError.endedEarly` inside any other body.
  mutating func connectionEnded(into output: inout [UInt8]) throws(BodyError) {
    switch source {
    case .ended: return
    case .untilClose: end(&output)
    case .counted, .chunked: throw .endedEarly
    }
  }

  private mutating func write(_ data: [UInt8], into output: inout [UInt8]) {
    // A chunk without data would be the last one.
    guard !data.isEmpty else { return }
    count += data.count
    guard target == .chunked else {
      output += data
      return
    }
    output += String(data.count, radix: 16).utf8
    output += [.carriageReturn, .lineFeed]
    output += data
    output += [.carriageReturn, .lineFeed]
  }

  private mutating func end(_ output: inout [UInt8]) {
    source = .ended
    if target == .chunked { output += "0\r\n\r\n".utf8 }
  }
}
