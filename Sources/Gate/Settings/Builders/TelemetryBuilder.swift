internal import ConfigurationEngine

extension GateSettings {
  /// The export of metrics and spans.
  public struct Telemetry: Sendable, Hashable {
    public enum Encoding: String, Sendable, Hashable, CaseIterable { case json, protobuf }
    public var collector: ServerAddress
    public var encoding: Encoding
    /// The share of requests whose spans are exported, 0 to 1.
    public var sample: Double
    /// PEM. An absolute path; validation found a certificate in the file. `nil` for the system's authorities.
    public var caFile: String?
    /// A file with header fields, one `Name: value` per line.
    public var headersFile: String?
  }
}

extension SettingsBuilder {
  /// `nil` if nothing is exported or a value is faulty.
  mutating func telemetry() -> GateSettings.Telemetry? {
    let (caFile, headersFile, sample) = (
      value(Keys.telemetryCA), value(Keys.telemetryHeaders), value(Keys.telemetrySample)
    )
    guard let collector = value(Keys.telemetryCollector) else {
      guard !entries.isFaulty(path(Keys.telemetryCollector)) else { return nil }
      for key in [Keys.telemetryCA, Keys.telemetryHeaders] where value(key) != nil {
        refuse(path(key), "has no effect without telemetry.otlp")
      }
      return nil
    }
    if caFile != nil, !collector.isSecure {
      refuse(path(Keys.telemetryCA), "has no effect for http://, which has no certificates")
    } else {
      check(.certificates, Keys.telemetryCA)
    }
    checkSecretKeys(.headerLines, Keys.telemetryHeaders, advice: HeaderLines.hint)
    guard let sample, let encoding = value(Keys.telemetryEncoding) else { return nil }
    return GateSettings.Telemetry(
      collector: collector, encoding: encoding, sample: sample, caFile: caFile, headersFile: headersFile)
  }
}
