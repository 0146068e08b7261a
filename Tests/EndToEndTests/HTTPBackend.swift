import Foundation
import TestSupport

/// A backend that writes down every ordinary request it gets.
struct HTTPBackend: Sendable {
  /// A request as the backend saw it.
  struct Request: Decodable, Sendable {
    let connection: Int
    var head: [String]?
    var length: Int?
    var sha256: String?
    /// Bytes that were no whole request.
    var broken: String?

    /// The values of the fields called `name`.
    func values(of name: String) -> [String] {
      (head ?? []).dropFirst().filter { $0.lowercased().hasPrefix(name.lowercased() + ":") }.map {
        $0.dropFirst(name.count + 1).trimmingCharacters(in: .whitespaces)
      }
    }
  }

  let process: ChildProcess
  let port: Int

  init() async throws {
    process = try PythonProgram.origin.start()
    let line = try await process.output.first("the backend") { $0.contains("port") }
    port = try JSON.object(line)["port"]?.number ?? 0
  }

  var url: String { "ws://127.0.0.1:\(port)" }

  var requests: [Request] {
    get throws {
      try process.output.lines.dropFirst().map { try JSONDecoder().decode(Request.self, from: Data($0.utf8)) }
    }
  }
}
