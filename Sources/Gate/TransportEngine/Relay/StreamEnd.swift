/// How far the stream of one peer has come to its end, and what remains to be done for it.
struct StreamEnd {
  /// The connection has failed.
  var hasFailed = false
  /// The peer has closed its sending side.
  var hasEnded = false
  /// The peer has sent a Close frame.
  var hasSentClose = false
  /// The gate has sent this peer a Close frame.
  var isToldToClose = false
  /// The end was passed on to the other peer, or will be after its pending bytes.
  var isPassedOn = false

  /// What to do now, in the order of the declarations.
  struct Steps: OptionSet {
    let rawValue: UInt8
    /// Sends this peer the end of the gate's stream, because both have sent their Close frame.
    static let answer = Steps(rawValue: 1)
    /// Records for the session's summary that the peer is gone.
    static let noteLoss = Steps(rawValue: 2)
    /// Closes this peer's socket at once.
    static let close = Steps(rawValue: 4)
    /// Sends the other peer the end of the stream.
    static let passOn = Steps(rawValue: 8)
  }

  var steps: Steps {
    guard !hasFailed else { return [.noteLoss, .close, .passOn] }
    var steps: Steps = []
    if isToldToClose && (hasSentClose || hasEnded) { steps.insert(.answer) }
    if hasEnded && !isPassedOn { steps.formUnion([.noteLoss, .passOn]) }
    return steps
  }
}
