import Foundation
import TestSupport

/// The Python programs in `Tests/Gate/Programs`.
enum PythonProgram: String {
  case acceptor
  case backend
  case certificates
  case dial
  case origin
  case proxyAttacks = "proxy_attacks"
  case verifiers
  case witness

  var path: String { ProjectFile.path("Tests/Gate/Programs/\(rawValue).py") }

  func start(_ arguments: [String] = []) throws -> ChildProcess {
    try ChildProcess(Places.tool("python3"), [path] + arguments, environment: Self.environment)
  }

  func run(_ arguments: [String], input: [String] = []) async throws -> [[String: JSON]] {
    let (_, output, errors) = try await ChildProcess.run(
      Places.tool("python3"), [path] + arguments, input: Array(input.map { $0 + "\n" }.joined().utf8),
      environment: Self.environment, within: .seconds(30))
    guard !output.isEmpty else { throw ProgramFailed(name: rawValue, errors: errors) }
    return try output.map { try JSON.object($0) }
  }

  /// Runs a program whose result is its exit status.
  func finish(_ arguments: [String]) async throws -> (exit: ChildProcess.Exit, output: [String], errors: [String]) {
    try await ChildProcess.run(
      Places.tool("python3"), [path] + arguments, environment: Self.environment, within: .seconds(60))
  }

  /// Python leaves no bytecode in the folder of the sources.
  private static let environment: [String: String?] = ["PYTHONDONTWRITEBYTECODE": "1", "PYTHONWARNINGS": "ignore"]
}

struct ProgramFailed: Error {
  let name: String
  let errors: [String]
}

/// A JSON value of a kind that the programs write.
enum JSON: Decodable, Sendable, Hashable {
  case number(Int)
  case text(String)
  case list([JSON])

  init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    if let number = try? container.decode(Int.self) {
      self = .number(number)
    } else if let text = try? container.decode(String.self) {
      self = .text(text)
    } else {
      self = .list(try container.decode([JSON].self))
    }
  }

  static func object(_ line: String) throws -> [String: JSON] {
    try JSONDecoder().decode([String: JSON].self, from: Data(line.utf8))
  }

  var number: Int? { if case .number(let number) = self { number } else { nil } }
  var text: String? { if case .text(let text) = self { text } else { nil } }
  var list: [JSON]? { if case .list(let list) = self { list } else { nil } }
}
