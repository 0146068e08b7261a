import Foundation
import TestSupport
import Testing

/// The result of a command.
struct Transcript {
  let status: Int32
  let output: String
  let errors: String

  /// The lines on standard error; a failure has two.
  var errorLines: [Substring] { errors.split(separator: "\n") }

  func report() throws -> Report { try JSONDecoder().decode(Report.self, from: Data(output.utf8)) }
}

/// The output of `--json`.
struct Report: Decodable {
  struct Step: Decodable {
    let name: String
    let result: String
    let detail: String
  }

  let kind: String
  let holds: Bool
  let at: String?
  let steps: [Step]
  let fields: Fields

  struct Fields: Decodable {
    let environment: String?
    let public_key: String?
    let counter: Int?
    let type: String?
    let risk_metric: String?
    let risk_metric_state: String?
    let not_before: String?
    let expiration_time: String?
  }

  var broken: [String] { steps.filter { $0.result == "broken" }.map(\.name) }
}

/// Runs the tested command in a temporary folder.
final class Shell {
  private let folder: URL

  init() throws {
    folder = FileManager.default.temporaryDirectory.appending(path: "sallyport-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(at: folder) }

  /// Writes a file and returns its path.
  func file(_ name: String, _ content: [UInt8]) throws -> String {
    let url = folder.appending(path: name)
    try Data(content).write(to: url)
    return url.path
  }

  func file(_ name: String, _ content: String) throws -> String { try file(name, Array(content.utf8)) }

  var path: String { folder.path }

  /// Runs `sallyport verify` with `arguments`.
  func verify(_ arguments: [String], input: [UInt8] = []) throws -> Transcript {
    let source = try file("input", input)
    let (output, errors) = (path + "/output", path + "/errors")
    let exit = try ChildProcess.run(
      Self.executable.path, ["verify"] + arguments, reading: source, writing: output, errors)
    return Transcript(
      status: try #require(exit.code), output: try String(contentsOfFile: output, encoding: .utf8),
      errors: try String(contentsOfFile: errors, encoding: .utf8))
  }

  /// The package manager builds the program into the folder of the tests.
  private static let executable = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
    .appending(path: "sallyport")
}
