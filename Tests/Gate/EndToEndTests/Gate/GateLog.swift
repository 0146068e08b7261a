import Foundation
import TestSupport

/// One line of the gate's log, with the fields that tests use.
struct LogEntry: Decodable, Sendable, Hashable {
  let level: String
  let message: String
  var address: String?
  var requestId: String?
  var code: String?
  var step: String?
  var status: Int?
  var reason: String?
  var end: String?
  var closeCode: Int?

  /// Returns `nil` if `line` is not one JSON object.
  init?(line: String) {
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    guard let entry = try? decoder.decode(LogEntry.self, from: Data(line.utf8)) else { return nil }
    self = entry
  }
}

/// The log that a gate writes to standard error.
struct GateLog: Sendable {
  let lines: LineLog

  /// Returns the first past or future entry for which `matches` is true.
  func first(
    _ purpose: String, within limit: Duration = .seconds(20), where matches: @escaping @Sendable (LogEntry) -> Bool
  ) async throws -> LogEntry {
    let line = try await lines.first(purpose, within: limit) { LogEntry(line: $0).map(matches) ?? false }
    guard let entry = LogEntry(line: line) else { throw NoSuchEntry(line: line) }
    return entry
  }

  /// Returns the log entry of the refusal of the request `id`.
  func refusal(of id: String) async throws -> LogEntry {
    try await first("the line about request \(id)") { $0.requestId == id && $0.message == "request refused" }
  }

  func listeningPort() async throws -> UInt16 {
    let entry = try await first("the port") { $0.message == "listening" }
    guard let digits = entry.address?.split(separator: ":").last, let port = UInt16(digits) else {
      throw NoSuchEntry(line: entry.address ?? "no address")
    }
    return port
  }
}

struct NoSuchEntry: Error {
  let line: String
}
