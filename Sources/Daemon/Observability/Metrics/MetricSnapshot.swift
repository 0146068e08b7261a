/// The values of one family at one time, for exports other than the text format.
public struct MetricSnapshot: Sendable, Hashable {
  /// The durations that fell into each range.
  public struct Distribution: Sendable, Hashable {
    /// The values of the family's labels, in their order.
    public let labels: [String]
    /// The upper bounds of the buckets in seconds, increasing.
    public let bounds: [Double]
    /// The count of each bucket alone; the last one counts values above all bounds.
    public let counts: [UInt64]
    /// The sum of all values in seconds.
    public let sum: Double
  }

  public let name: String
  public let help: String
  public let kind: MetricKind
  /// The names of the labels.
  public let labels: [String]
  /// The values of counters and gauges.
  public var samples: [Sample] = []
  /// The values of histograms.
  public var distributions: [Distribution] = []

  init(_ family: FamilyDescription) {
    (name, help, kind, labels) = (family.name, family.help, family.kind, family.labels)
  }
}
