import Foundation
import TestSupport
import Testing

/// Runs `scripts/fleet`, which computes with constants that were measured before, and starts nothing.
@Suite("The model of a fleet", .timeLimit(.minutes(2)))
struct FleetTests {
  private static func fleet(_ arguments: String...) async throws -> (
    exit: ChildProcess.Exit, output: [String], errors: [String]
  ) {
    try await ChildProcess.run(Places.tool("python3"), [ProjectFile.path("scripts/fleet")] + arguments)
  }

  /// Calls `body` with the path of a file of constants in which `change` was made.
  private static func withConstants<R>(
    _ change: (inout String) throws -> Void, _ body: (String) async throws -> R
  ) async throws -> R {
    var text = try ProjectFile.text("scripts/fleet.json")
    try change(&text)
    return try await Places.withTemporaryFolder { folder in
      try text.write(toFile: folder + "/constants.json", atomically: true, encoding: .utf8)
      return try await body(folder + "/constants.json")
    }
  }

  private static func value(_ name: String, in output: [String]) throws -> Double {
    let document = try JSONSerialization.jsonObject(with: Data(output.joined(separator: "\n").utf8)) as? [String: Any]
    let plan = try #require(document?["plan"] as? [String: Any])
    return try #require(plan[name] as? Double, "\(name)")
  }

  @Test("It predicts runs of 1, 2 and 4 gates within 20 %, and the article has its tables and plots")
  func check() async throws {
    let (exit, output, errors) = try await Self.fleet("--check")
    #expect(exit == .code(0), "\(output.filter { !$0.hasPrefix("ok: ") }) \(errors)")
    for gates in ["1", "2", "4"] { #expect(output.contains { $0.hasPrefix("ok: \(gates) gates, ") }) }
  }

  @Test("A run that it does not predict is found", arguments: ["gate_us", "postgres_us", "wal"])
  func otherRun(_ name: String) async throws {
    let pattern = try Regex("(\"gates\": 4,[^}]*\"\(name)\": )[0-9.]+", as: (Substring, Substring).self)
    try await Self.withConstants({ $0.replace(pattern) { "\($0.output.1)9999999.0" } }) { constants in
      let (exit, output, errors) = try await Self.fleet("--check", "--constants", constants)
      #expect(exit == .code(1), "\(errors)")
      #expect(output.contains { $0.hasPrefix("WRONG: 4 gates, ") })
    }
  }

  @Test("Constants that cannot be read are refused, with a hint")
  func unreadable() async throws {
    for change in [{ $0.removeLast(20) }, { $0.replace("\"gate.cpu_ping\"", with: "\"other\"") }]
      as [(inout String) -> Void]
    {
      try await Self.withConstants(change) { constants in
        let (exit, output, errors) = try await Self.fleet("--constants", constants)
        #expect(exit == .code(65) && output.isEmpty)
        #expect(errors.first?.hasPrefix("error: \(constants): ") == true && errors.last?.hasPrefix("hint: ") == true)
      }
    }
  }

  @Test(
    "A fleet that cannot be computed is refused, with a hint", arguments: ["--cold=2", "--regions=1.5", "--peak=nan"])
  func usage(_ argument: String) async throws {
    let (exit, output, errors) = try await Self.fleet(argument)
    #expect(exit == .code(64) && output.isEmpty)
    #expect(errors.first?.hasPrefix("error: ") == true && errors.last == "hint: scripts/fleet --help", "\(errors)")
  }

  @Test("A second database halves what each one stores")
  func databases() async throws {
    let (_, one, _) = try await Self.fleet("--json")
    let (_, two, _) = try await Self.fleet("--json", "--databases", "2")
    let (large, small) = (try Self.value("db_bytes", in: one), try Self.value("db_bytes", in: two))
    #expect(large > 0 && small == large / 2)
  }
}
