import Locking
public import Logging

/// Keeps the lines that are logged.
public final class CapturedLog: Sendable {
  public struct Line: Sendable {
    public let level: Logger.Level
    public let message: String
    public let metadata: [String: String]
  }

  private let kept = LockedValue<[Line]>([])

  public init() {}

  public var lines: [Line] { kept.withLock { $0 } }

  public func lines(saying message: String) -> Int { lines.count { $0.message == message } }

  /// Waits for a line.
  ///
  /// - Throws: `CancellationError` if the task is cancelled, for example when the time limit of a test expires.
  public func line(saying message: String) async throws { try await lines(1, saying: message) }

  /// Waits until `count` lines with this message were logged.
  ///
  /// - Throws: `CancellationError` if the task is cancelled, for example when the time limit of a test expires.
  public func lines(_ count: Int, saying message: String) async throws {
    while lines(saying: message) < count { try await Task.sleep(for: .milliseconds(5)) }
  }

  public var logger: Logger {
    Logger(label: "mfa") { _ in Handler(keeper: self) }
  }

  private func keep(_ line: Line) { kept.withLock { $0.append(line) } }

  private struct Handler: LogHandler {
    let keeper: CapturedLog
    var metadata: Logger.Metadata = [:]
    var logLevel: Logger.Level = .info

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
      get { metadata[key] }
      set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
      keeper.keep(
        Line(
          level: event.level, message: "\(event.message)",
          metadata: (event.metadata ?? [:]).mapValues { "\($0)" }))
    }
  }
}
