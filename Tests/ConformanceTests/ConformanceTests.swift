import Foundation
import GateProcesses
import SimulatedDevice
import TestSupport
import Testing

/// What a run of the cases says of one end: verdicts by the name of the case.
typealias Score = [String: Verdict]

struct Verdict: Decodable, Sendable, Hashable {
  let verdict: String
  let close: String
  /// The code of the Close that came; 0 for none.
  let code: Int
}

/// The cases of the Autobahn test suite. The gate has no opinion about a socket: a server behind it, and a client in
/// front of it, have to score as they do without it.
@Suite(
  "Behind the gate", .serialized, .timeLimit(.minutes(20)),
  .enabled(if: CaseRunner.isWanted, "scripts/test --conformance"))
struct ConformanceTests {
  enum Backend: String, CaseIterable, Sendable { case echo, faulty }

  @Test("a server scores as without it, a good one and one that breaks most rules", arguments: Backend.allCases)
  func server(_ kind: Backend) async throws {
    let backend = try CaseRunner.start([kind.rawValue])
    defer { backend.kill() }
    let port = try await CaseRunner.port(of: backend)
    let cases = kind == .echo ? CaseRunner.cases : CaseRunner.quickCases
    let direct = try await CaseRunner.score(["drive", "ws://127.0.0.1:\(port)"] + cases)
    try await GateProcess.serving(CaseRunner.openPlan(before: port)) { gate in
      let wrap = try await TLSWrap(to: gate)
      defer { wrap.process.kill() }
      let through: @Sendable ([String]) async throws -> Score = {
        try await CaseRunner.score(["drive", "ws://127.0.0.1:\(wrap.port)"] + $0)
      }
      let again: @Sendable ([String]) async throws -> Score = {
        try await CaseRunner.score(["drive", "ws://127.0.0.1:\(port)"] + $0)
      }
      try await expect(through(cases), toBe: direct, again: through, again, "a server, \(kind)")
    }
    // A good server does well, and one that does not is told apart.
    #expect(direct.values.contains { $0.verdict == "FAILED" } == (kind == .faulty))
  }

  @Test("a client scores as without it")
  func client() async throws {
    let direct = try await clientScore { (["client", "ws://127.0.0.1:\($0)"], nil) }
    try await Places.withTemporaryFolder { folder in
      let through = try await clientScore { port in
        let gate = try await GateProcess(CaseRunner.openPlan(before: port), in: folder + "/gate")
        return (["client", "wss://localhost:\(gate.port)", gate.folder.tlsAuthorityPath], gate)
      }
      try await expect(through, toBe: direct, again: nil, nil, "a client")
    }
  }

  /// The score of a client that is started as `way` says for the port of the cases.
  private func clientScore(
    _ way: (Int) async throws -> (arguments: [String], gate: GateProcess?)
  ) async throws -> Score {
    let server = try CaseRunner.start(["serve"] + CaseRunner.quickCases)
    defer { server.kill() }
    let (arguments, gate) = try await way(CaseRunner.port(of: server))
    defer { gate?.process.kill() }
    let client = try CaseRunner.start(arguments)
    defer { client.kill() }
    #expect(try await client.exit(within: .seconds(300)) == .code(0), "\(client.errors.lines.suffix(3))")
    return try CaseRunner.score(of: await server.output.all(within: .seconds(60)))
  }

  /// Cases that come out differently are asked again, each way: some judge by time, and other programs run here.
  private func expect(
    _ score: Score, toBe direct: Score, again: (@Sendable ([String]) async throws -> Score)?,
    _ directAgain: (@Sendable ([String]) async throws -> Score)?, _ what: String
  ) async throws {
    #expect(direct.count >= 200 && Set(score.keys) == Set(direct.keys))
    var differences = direct.keys.filter { direct[$0] != score[$0] }.sorted()
    print("ConformanceTests: \(what): \(direct.count) cases, \(differences.count) to ask again: \(differences)")
    if let again, let directAgain, !differences.isEmpty {
      let (one, other) = (try await again(differences), try await directAgain(differences))
      differences = differences.filter { one[$0] != other[$0] }
    }
    let counts = Dictionary(direct.values.map { ($0.verdict, 1) }, uniquingKeysWith: +)
    print("ConformanceTests: \(what): \(counts.sorted { $0.key < $1.key })")
    for name in differences {
      Issue.record("\(what): \(name) is \(String(describing: score[name])), not \(String(describing: direct[name]))")
    }
  }
}
