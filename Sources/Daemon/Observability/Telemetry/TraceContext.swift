/// A position in a distributed trace (W3C Trace Context).
public struct TraceContext: Sendable, Hashable {
  /// 32 lower-case hex digits, not all zero.
  public let traceID: String
  /// 16 lower-case hex digits, not all zero.
  public let spanID: String
  /// Whether the spans of this trace are recorded.
  public let isSampled: Bool

  /// Returns `nil` if an id has another form.
  public init?(traceID: String, spanID: String, isSampled: Bool) {
    guard Self.isID(traceID, length: 32), Self.isID(spanID, length: 16) else { return nil }
    (self.traceID, self.spanID, self.isSampled) = (traceID, spanID, isSampled)
  }

  /// Parses the value of a `traceparent` field. A later version than 00 may have more parts, which are ignored.
  ///
  /// Returns `nil` for a value that the specification tells receivers to ignore.
  public init?(traceparent: String) {
    // As bytes: the value is a client's, and a `Character` of many combining marks is expensive to compare.
    let fields = traceparent.utf8.split(separator: UInt8(ascii: "-"), maxSplits: 4, omittingEmptySubsequences: false)
    let parts = fields.map(Substring.init)
    guard parts.count >= 4, Self.isHex(parts[0], length: 2), parts[0] != "ff", parts[0] != "00" || parts.count == 4,
      Self.isHex(parts[3], length: 2), let flags = UInt8(parts[3], radix: 16)
    else { return nil }
    self.init(traceID: String(parts[1]), spanID: String(parts[2]), isSampled: flags & 1 == 1)
  }

  /// The value of a `traceparent` field.
  public var traceparent: String { "00-\(traceID)-\(spanID)-\(isSampled ? "01" : "00")" }

  /// Returns a position below this one, with a new random span id.
  public func child() -> TraceContext {
    TraceContext(unchecked: traceID, Self.randomSpanID(), isSampled)
  }

  /// Returns the position of a new trace. `traceID` must have the form of a trace id.
  public static func root(traceID: String, isSampled: Bool) -> TraceContext? {
    TraceContext(traceID: traceID, spanID: randomSpanID(), isSampled: isSampled)
  }

  private init(unchecked traceID: String, _ spanID: String, _ isSampled: Bool) {
    (self.traceID, self.spanID, self.isSampled) = (traceID, spanID, isSampled)
  }

  private static func randomSpanID() -> String {
    let digits = String(UInt64.random(in: 1...UInt64.max), radix: 16)
    return String(repeating: "0", count: 16 - digits.utf8.count) + digits
  }

  private static func isID(_ text: String, length: Int) -> Bool {
    isHex(text[...], length: length) && text.utf8.contains { $0 != UInt8(ascii: "0") }
  }

  private static func isHex(_ text: Substring, length: Int) -> Bool {
    text.utf8.count == length
      && text.utf8.allSatisfy {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains($0)
      }
  }
}
