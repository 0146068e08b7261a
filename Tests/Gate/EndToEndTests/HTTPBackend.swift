import Foundation
import FoundationNetworking
import TestSupport

/// A backend that records every ordinary request that it receives.
struct HTTPBackend: Sendable {
  /// A request as the backend received it.
  struct Request: Decodable, Sendable {
    let connection: Int
    var head: [String]?
    var length: Int?
    var sha256: String?
    /// Bytes that were not a complete request.
    var broken: String?

    /// Returns the values of the fields called `name`.
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

  /// The requests recorded so far. Sends a marker directly to the backend: when it is recorded, all earlier requests
  /// are recorded too.
  var requests: [Request] {
    get async throws {
      let mark = "/mark/\(UUID().uuidString)"
      guard let url = URL(string: "http://127.0.0.1:\(port)\(mark)") else { throw URLError(.badURL) }
      _ = try await URLSession.shared.data(from: url)
      _ = try await process.output.first("the marker request") { $0.contains(mark) }
      return try process.output.lines.dropFirst()
        .map { try JSONDecoder().decode(Request.self, from: Data($0.utf8)) }
        .filter { $0.head?.first?.hasPrefix("GET /mark/") != true }
    }
  }
}
