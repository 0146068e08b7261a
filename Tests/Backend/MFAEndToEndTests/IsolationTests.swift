import Foundation
import TestSupport
import Testing

/// Runs some tests of commands again, on a machine with a running gate and backend: `scripts/beside`.
@Suite("Tests beside servers of this machine", .timeLimit(.minutes(10)))
struct IsolationTests {
  private static let script = ProjectFile.path("scripts/beside")

  private static func isPossible() async -> Bool {
    (try? await ChildProcess.run("/usr/bin/python3", [script, "--possible"]))?.exit == .code(0)
  }

  @Test(
    "commands under test leave a gate and a backend at the standard places of the machine alone",
    .enabled("this user may not make namespaces", isPossible))
  func leftAlone() async throws {
    let program = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
    let suites = [
      #"^OperatorTests\.FindingTests/"#, #"^MFACommandTests\.OperatorCommandTests/(unnamed|movedPlaces)"#,
      #"^EndToEndTests\.OwnPlacesTests/"#,
    ]
    let run = try await ChildProcess.run(
      "/usr/bin/python3",
      [Self.script, "--build", Places.products, program, "--testing-library", "swift-testing", "--no-parallel"]
        + suites.flatMap { ["--filter", $0] }, within: .seconds(300))
    #expect(run.exit == .code(0), "\(run.errors.filter { !$0.contains("passed") && !$0.contains("started") })")
    #expect(run.errors.last == "scripts/beside: 3 servers and 3 stores were left alone")
    #expect(run.errors.contains { $0.contains("Test run with ") && !$0.contains("with 0 tests") }, "\(run.errors)")
  }
}
