public import ByteCoding

/// One step of a request, with its place in the trace.
public struct Span: Sendable {
  /// The kind of a span, with OTLP's number.
  public enum Kind: Int, Sendable, Hashable, CaseIterable {
    case `internal` = 1
    case server = 2
    case client = 3
  }

  /// The value of an attribute.
  public enum Value: Sendable, Hashable {
    case text(String)
    case number(Int64)
    case flag(Bool)
  }

  public var context: TraceContext
  /// The id of the span that contains this one; `nil` for the first span of a trace.
  public var parentID: String?
  public var name: String
  public var kind: Kind
  public var start: Timestamp
  public var end: Timestamp
  /// In the order of the export; names are those of OpenTelemetry's semantic conventions, where they exist.
  public var attributes: [(name: String, value: Value)]
  /// Whether the step failed.
  public var isFailure: Bool

  public init(
    _ name: String, _ kind: Kind, context: TraceContext, parentID: String?, from start: Timestamp, to end: Timestamp,
    attributes: [(name: String, value: Value)] = [], isFailure: Bool = false
  ) {
    (self.name, self.kind, self.context, self.parentID) = (name, kind, context, parentID)
    (self.start, self.end, self.attributes, self.isFailure) = (start, max(start, end), attributes, isFailure)
  }
}
