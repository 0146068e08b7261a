/// How large the head of a message may be.
struct HeadLimits: Sendable, Hashable {
  /// Bytes from the first line to the empty line, both included.
  var bytes = 16 << 10
  /// Field lines.
  var fields = 100

  static let standard = HeadLimits()
}
