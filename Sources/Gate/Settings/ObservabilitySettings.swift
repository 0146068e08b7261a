internal import ConfigurationEngine

extension GateSettings {
  /// The address of a listener without TLS and without a token, such as the metrics server.
  public struct ListeningAddress: Sendable, Hashable {
    /// An IPv4 or IPv6 address, without brackets.
    public var address: String
    /// 0 selects any free port.
    public var port: UInt16
  }

  /// The format and level of log lines on standard error.
  public struct Log: Sendable, Hashable {
    public enum Format: String, Sendable, Hashable, CaseIterable { case auto, json, text }
    public enum Level: String, Sendable, Hashable, CaseIterable {
      case trace, debug, info, notice, warning, error, critical
    }
    public var format: Format
    /// The minimum level that is logged.
    public var level: Level
  }
}

extension SettingsBuilder {
  func log() -> GateSettings.Log? {
    guard let format = value(Keys.logFormat), let level = value(Keys.logLevel) else { return nil }
    return GateSettings.Log(format: format, level: level)
  }
}
