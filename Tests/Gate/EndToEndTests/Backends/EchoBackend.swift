import TestSupport

/// An echo server by Python's websockets, or one that speaks plain TCP.
struct EchoBackend: Sendable {
  enum Kind: Sendable {
    case webSocket
    case secureWebSocket(certificate: String, key: String)
    case unix(path: String)
    case tcp

    fileprivate var arguments: [String] {
      switch self {
      case .webSocket: ["websocket"]
      case .secureWebSocket(let certificate, let key): ["tls", certificate, key]
      case .unix(let path): ["unix", path]
      case .tcp: ["tcp"]
      }
    }
  }

  let process: ChildProcess
  /// The value of `upstream` in a route.
  let upstream: String

  init(_ kind: Kind = .webSocket) async throws {
    process = try PythonProgram.backend.start(kind.arguments)
    let line = try await process.output.first("the backend") { $0.contains("place") }
    let port = try JSON.object(line)["place"]?.number ?? 0
    upstream =
      switch kind {
      case .webSocket: "ws://127.0.0.1:\(port)"
      case .secureWebSocket: "wss://localhost:\(port)"
      case .unix(let path): "unix:\(path)"
      case .tcp: "tcp://127.0.0.1:\(port)"
      }
  }

  /// Returns the header fields of the first socket, by lowercase name.
  func firstHeaders() async throws -> [String: String] {
    let line = try await process.output.first("a socket") { $0.contains("\"headers\"") }
    let pairs = try JSON.object(line)["headers"]?.list?.compactMap { $0.list?.compactMap(\.text) } ?? []
    return Dictionary(pairs.compactMap { $0.count == 2 ? ($0[0].lowercased(), $0[1]) : nil }) { "\($0), \($1)" }
  }
}
