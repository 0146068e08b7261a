internal import FoundationEssentials
internal import Glibc
public import Logging
public import Observability
public import Settings

/// Selects the format and destination of log lines.
public enum LogOutput {
  /// Returns a logger for standard error in the format of `settings`, and the sink that buffers its lines.
  public static func make(_ settings: GateSettings.Log) -> (logger: Logger, sink: LineSink) {
    let isTerminal = isatty(STDERR_FILENO) == 1
    let isText =
      switch settings.format {
      case .auto: isTerminal
      case .text: true
      case .json: false
      }
    let level = Logger.Level(rawValue: settings.level.rawValue) ?? .info
    guard isText else {
      let sink = LineSink(descriptor: STDERR_FILENO)
      let logger = Logger(label: "sallyport") { label in
        var handler = JSONLineHandler(label: label, sink: sink)
        handler.logLevel = level
        return handler
      }
      return (logger, sink)
    }
    let sink = LineSink(descriptor: STDERR_FILENO, notice: { "ERROR log lines dropped count=\($0)" })
    let isColored = isTerminal && mayColor(ProcessInfo.processInfo.environment)
    let logger = Logger(label: "sallyport") { _ in
      var handler = TextLineHandler(sink: sink, isColored: isColored)
      handler.logLevel = level
      return handler
    }
    return (logger, sink)
  }

  /// Follows no-color.org: any non-empty value of NO_COLOR disables colors.
  private static func mayColor(_ environment: [String: String]) -> Bool {
    (environment["NO_COLOR"] ?? "").isEmpty && environment["TERM"] != "dumb"
  }
}
