import Foundation
import TestSupport
import Testing

@testable import Settings

/// A file in Tests/Gate/BrokenConfigurations. Its first comments contain the expected errors and the expected verdict
/// of a schema validator.
struct BrokenConfiguration: Sendable, CustomTestStringConvertible {
  enum Verdict: String, Sendable { case refuses, accepts, unreadable }

  let name: String
  let yaml: String
  var path: String { Self.folder + "/" + name }
  var testDescription: String { name }

  static let folder = ProjectFile.path("Tests/Gate/BrokenConfigurations")

  static let all: [BrokenConfiguration] = {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
    return names.filter { $0.hasSuffix(".yaml") }.sorted().map { name in
      let text = try? String(contentsOfFile: folder + "/" + name, encoding: .utf8)
      return BrokenConfiguration(name: name, yaml: text ?? "")
    }
  }()

  private var comments: [Substring] {
    yaml.split(separator: "\n").prefix { $0.hasPrefix("# ") }.map { $0.dropFirst(2) }
  }

  /// The expected errors, as `line:column: key: reason`.
  var faults: [String] { comments.filter { $0.first?.isNumber == true }.map(String.init) }

  var verdict: Verdict? {
    let verdicts: [String: Verdict] = [
      "A validator with the schema refuses it.": .refuses, "A validator with the schema cannot tell.": .accepts,
      "A validator with the schema cannot read it.": .unreadable,
    ]
    return comments.lazy.compactMap { verdicts[String($0)] }.first
  }
}

@Suite("Broken configurations")
struct BrokenConfigurationTests {
  @Test("There are more than thirty files, each with its errors and the schema's verdict")
  func number() {
    #expect(BrokenConfiguration.all.count > 30)
    for broken in BrokenConfiguration.all {
      #expect(!broken.faults.isEmpty && broken.verdict != nil, "\(broken.name)")
    }
  }

  @Test("Each error is reported with its line, its column and its key", arguments: BrokenConfiguration.all)
  func faults(_ broken: BrokenConfiguration) throws {
    let workspace = try Workspace()
    let reported = try workspace.faults(yaml: broken.yaml, environment: [:])
    #expect(reported == broken.faults.map { "gate.yaml:\($0)" })
  }

  @Test("The schema's verdict is the one in the file")
  func schema() async throws {
    let verdicts = try await SchemaValidator.verdicts(on: BrokenConfiguration.all.map(\.path))
    for (broken, verdict) in zip(BrokenConfiguration.all, verdicts) {
      #expect(verdict.verdict == broken.verdict?.rawValue, "\(broken.name): \(verdict.errors)")
    }
    #expect(verdicts.count { $0.verdict == "refuses" } > 20)
  }
}

/// Python's jsonschema, an independent validator.
enum SchemaValidator {
  struct Verdict: Decodable, Sendable {
    let verdict: String
    let errors: [String]
  }

  static func verdicts(on files: [String]) async throws -> [Verdict] {
    let program = ProjectFile.path("Tests/Gate/Programs/schema.py")
    let schema = ProjectFile.path("config/sallyport.schema.json")
    let (exit, output, errors) = try await ChildProcess.run(
      Places.tool("python3"), [program, schema] + files, within: .seconds(120))
    try #require(exit == .code(0), "\(errors.suffix(3))")
    return try output.map { try JSONDecoder().decode(Verdict.self, from: Data($0.utf8)) }
  }
}
