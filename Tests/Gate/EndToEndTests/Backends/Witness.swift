import TestSupport

/// A backend that records every byte that it receives. A byte that is not in the record did not pass the gate.
struct Witness: Sendable {
  let process: ChildProcess
  let port: Int

  init() async throws {
    process = try PythonProgram.witness.start()
    let line = try await process.output.first("the witness") { $0.contains("port") }
    port = try JSON.object(line)["port"]?.number ?? 0
  }

  var url: String { "ws://127.0.0.1:\(port)" }

  /// The received request heads, each as its lines.
  var heads: [[String]] {
    get throws { try events.compactMap { $0["head"]?.list?.compactMap(\.text) } }
  }

  /// The number of connections that were opened, with or without data.
  var connectionCount: Int {
    get throws { try Set(events.compactMap { $0["connection"]?.number }).count }
  }

  /// Returns the head of the connection `number`, counted from 1, after it has arrived.
  func head(_ number: Int) async throws -> [String] {
    let line = try await process.output.first("head \(number)") {
      $0.contains("\"connection\": \(number),") && $0.contains("\"head\"")
    }
    return try JSON.object(line)["head"]?.list?.compactMap(\.text) ?? []
  }

  private var events: [[String: JSON]] {
    get throws { try process.output.lines.map { try JSON.object($0) } }
  }
}
