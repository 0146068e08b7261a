/// The maximum size of a message head.
struct HeadLimits: Sendable, Hashable {
  /// The number of bytes from the first line to the empty line, both included.
  var bytes = 16 << 10
  /// The number of field lines.
  var fields = 100

  static let standard = HeadLimits()
}
