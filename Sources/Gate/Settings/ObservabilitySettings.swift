extension GateSettings {
  /// Where Prometheus and those who watch over processes ask, without a token.
  public struct Metrics: Sendable, Hashable {
    /// An IPv4 or IPv6 address, without brackets.
    public var address: String
    /// 0 takes any free port.
    public var port: UInt16
  }

  /// The lines on standard error.
  public struct Log: Sendable, Hashable {
    public enum Format: String, Sendable, Hashable, CaseIterable { case auto, json, text }
    public enum Level: String, Sendable, Hashable, CaseIterable {
      case trace, debug, info, notice, warning, error, critical
    }
    public var format: Format
    /// Lines below it are not written.
    public var level: Level
  }
}

extension SettingsBuilder {
  func log() -> GateSettings.Log? {
    guard let format = value(Keys.logFormat), let level = value(Keys.logLevel) else { return nil }
    return GateSettings.Log(format: format, level: level)
  }
}
