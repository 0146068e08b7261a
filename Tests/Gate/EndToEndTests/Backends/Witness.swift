import TestSupport

/// A backend that writes down every byte it gets: what it has not written down has not come through the gate.
struct Witness: Sendable {
  let process: ChildProcess
  let port: Int

  init() async throws {
    process = try PythonProgram.witness.start()
    let line = try await process.output.first("the witness") { $0.contains("port") }
    port = try JSON.object(line)["port"]?.number ?? 0
  }

  var url: String { "ws://127.0.0.1:\(port)" }

  /// The heads that came, each as its lines.
  var heads: [[String]] {
    get throws { try events.compactMap { $0["head"]?.list?.compactMap(\.text) } }
  }

  /// How many connections were opened, whatever came over them.
  var connectionCount: Int {
    get throws { try Set(events.compactMap { $0["connection"]?.number }).count }
  }

  /// The head of the connection called `number`, counted from 1, once it has come.
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
