import Foundation
import GateProcesses
import SimulatedDevice
import TestSupport
import Testing

/// The result of a run for one endpoint: verdicts by the name of the case.
typealias Score = [String: Verdict]

struct Verdict: Decodable, Sendable, Hashable {
  let verdict: String
  let close: String
  /// The code of the received Close frame; 0 if there was none.
  let code: Int
}

/// The cases of the Autobahn test suite. The gate does not change messages, so a server or a client must score
/// through the gate as it scores without it.
@Suite(
  "Conformance of a relay", .serialized, .timeLimit(.minutes(20)),
  .enabled(if: CaseRunner.isWanted, "scripts/test --conformance"))
struct ConformanceTests {
  enum Backend: String, CaseIterable, Sendable { case echo, faulty }

  @Test(
    "A correct server and a faulty one score through the gate as without it",
    arguments: Backend.allCases
  )
  func server(_ kind: Backend) async throws {
    let backend = try CaseRunner.start([kind.rawValue])
    defer { backend.kill() }
    let port = try await CaseRunner.port(of: backend)
    let cases = kind == .echo ? CaseRunner.cases : CaseRunner.quickCases
    let direct: Asking = { try await CaseRunner.score(["drive", "ws://127.0.0.1:\(port)"] + $0) }
    let score = try await GateProcess.serving(CaseRunner.openPlan(before: port)) { gate in
      let wrap = try await TLSWrap(to: gate)
      defer { wrap.process.kill() }
      let through: Asking = { try await CaseRunner.score(["drive", "ws://127.0.0.1:\(wrap.port)"] + $0) }
      return try await compare("a server, \(kind)", in: cases, through: through, direct: direct)
    }
    // The correct server passes all cases, and the faulty one fails some.
    #expect(score.values.contains { $0.verdict == "FAILED" } == (kind == .faulty))
  }

  @Test("A client scores through the gate as without it")
  func client() async throws {
    let direct: Asking = { cases in
      try await clientScore(in: cases) { (["client", "ws://127.0.0.1:\($0)"], nil) }
    }
    let through: Asking = { cases in
      try await Places.withTemporaryFolder { folder in
        try await clientScore(in: cases) { port in
          let gate = try await GateProcess(CaseRunner.openPlan(before: port), in: folder + "/gate")
          return (["client", "wss://localhost:\(gate.port)", gate.folder.tlsAuthorityPath], gate)
        }
      }
    }
    _ = try await compare("a client", in: CaseRunner.quickCases, through: through, direct: direct)
  }

  /// Returns the score of a client that is started with the arguments that `way` returns for the port of the cases.
  private func clientScore(
    in cases: [String], _ way: (Int) async throws -> (arguments: [String], gate: GateProcess?)
  ) async throws -> Score {
    let server = try CaseRunner.start(["serve"] + cases)
    defer { server.kill() }
    let (arguments, gate) = try await way(CaseRunner.port(of: server))
    defer { gate?.process.kill() }
    let client = try CaseRunner.start(arguments)
    defer { client.kill() }
    #expect(try await client.exit(within: .seconds(300)) == .code(0), "\(client.errors.lines.suffix(3))")
    return try CaseRunner.score(of: await server.output.all(within: .seconds(60)))
  }

  private typealias Asking = @Sendable (_ cases: [String]) async throws -> Score

  /// Runs cases with different results again, both with and without the gate: some depend on time, and other programs
  /// run on this machine.
  ///
  /// - Returns: the score without the gate.
  private func compare(
    _ what: String, in cases: [String], through: Asking, direct: Asking
  ) async throws -> Score {
    let (without, with) = (try await direct(cases), try await through(cases))
    #expect(without.count >= 200 && Set(with.keys) == Set(without.keys))
    var differences = without.keys.filter { without[$0] != with[$0] }.sorted()
    print("ConformanceTests: \(what): \(without.count) cases, \(differences.count) to run again: \(differences)")
    if !differences.isEmpty {
      let (one, other) = (try await through(differences), try await direct(differences))
      differences = differences.filter { one[$0] != other[$0] }
    }
    let counts = Dictionary(without.values.map { ($0.verdict, 1) }, uniquingKeysWith: +)
    print("ConformanceTests: \(what): \(counts.sorted { $0.key < $1.key })")
    for name in differences {
      let (one, other) = (String(describing: with[name]), String(describing: without[name]))
      Issue.record("\(what): \(name) is \(one), not \(other)")
    }
    return without
  }
}
