@testable import TransportEngine

extension FuzzTarget {
  /// The first byte selects the message limit and whether a Pong is expected, the second one where the bytes are cut.
  static let frameTracker = FuzzTarget(
    name: "frame-tracker", seeds: { FrameTrackerInvariants.seeds }, accepts: FrameTrackerInvariants.check)
}

/// The forwarded bytes and the result of parsing them do not depend on how the bytes are cut.
enum FrameTrackerInvariants {
  static func check(_ input: [UInt8]) throws(InvariantViolation) -> Bool {
    guard input.count >= 2 else { return false }
    let bytes = Array(input.dropFirst(2))
    let limit: UInt64 = [.max, 64, 1000, 100_000][Int(input[0] & 3)]
    let token: UInt64? = input[0] & 4 != 0 ? 9 : nil
    let whole = run([bytes], limit, token)
    let pieces = run(Array(Pieces(of: bytes, pattern: input[1])), limit, token)
    try require(
      pieces == whole, "pieces give the same result as the whole", "\(pieces.stops) instead of \(whole.stops)")
    try require(whole.messageLength <= limit, "no message exceeds the limit")
    // Fragments can announce more than 64 bits can count.
    if token == nil, limit == .max, whole.stops.last != .tooBig {
      try require(whole.passed[...] == bytes.prefix(whole.passed.count), "the relay forwards the bytes unchanged")
      try require(bytes.count - whole.passed.count < 14 + 125, "the tracker keeps no more than a control frame")
    }
    return whole.isAtBoundary && !bytes.isEmpty && whole.passed.count == bytes.count
  }

  private struct Run: Equatable {
    var passed: [UInt8] = []
    var stops: [FrameTracker.Stop] = []
    var messageLength: UInt64 = 0
    var isAtBoundary = true
    var hasClosed = false
  }

  /// Runs the tracker over `pieces`. Bytes that are not passed come again with the next piece.
  private static func run(_ pieces: [[UInt8]], _ limit: UInt64, _ token: UInt64?) -> Run {
    var tracker = FrameTracker()
    var run = Run()
    var held: [UInt8] = []
    for piece in pieces {
      held += piece
      take(&held, &tracker, &run, limit, token)
      if run.stops.last == .tooBig { break }
    }
    (run.messageLength, run.isAtBoundary, run.hasClosed) =
      (tracker.messageLength, tracker.isAtBoundary, tracker.hasClosed)
    return run
  }

  private static func take(
    _ held: inout [UInt8], _ tracker: inout FrameTracker, _ run: inout Run, _ limit: UInt64, _ token: UInt64?
  ) {
    while !held.isEmpty {
      let (count, stop) = held.withUnsafeBytes { tracker.advance(over: $0, maxMessage: limit, pong: token) }
      run.passed += held.prefix(count)
      held.removeFirst(count)
      switch stop {
      case .windowEnd, .boundary: continue
      case .incomplete: return
      case .pong(let length): held.removeFirst(length)
      case .close, .tooBig: break
      }
      run.stops.append(stop)
      if stop == .tooBig { return }
    }
  }

  static let seeds: [[UInt8]] = {
    let text: [UInt8] = [0x81, 0x02, 0x68, 0x69]
    let masked: [UInt8] = [0x81, 0x82, 1, 2, 3, 4, 0x69, 0x6B]
    let fragments: [UInt8] = [0x01, 0x01, 0x61, 0x89, 0x01, 0x70, 0x00, 0x01, 0x62, 0x80, 0x00]
    let long: [UInt8] = [0x82, 0x7E, 0x01, 0x00] + [UInt8](repeating: 7, count: 256)
    let pong: [UInt8] = [0x8A, 0x08, 0, 0, 0, 0, 0, 0, 0, 9]
    let close: [UInt8] = [0x88, 0x05, 0x0F, 0xA1, 0x62, 0x79, 0x65]
    return [text, masked, fragments, long, pong + text, text + close].flatMap { bytes in
      [[0, 0], [4, 3], [1, 7], [6, 0]].map { $0 + bytes }
    } + [[0, 1] + text + masked + fragments + long + pong + close]
  }()
}
