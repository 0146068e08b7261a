import ByteCoding
import Foundation
import GateProcesses
import PostgresServers
import SimulatedDevice
import TestSupport
import Testing
import Transport
import TransportEngine

@Suite("Keys of Android devices after the loss of the store", .serialized, .timeLimit(.minutes(5)))
struct AndroidRestoreTests {
  enum Kind: String, CaseIterable, CustomTestStringConvertible {
    case sqlite, postgres
    var testDescription: String { rawValue }

    func newURL(in folder: String) async throws -> String {
      switch self {
      case .sqlite: "sqlite://\(folder)/state.db"
      case .postgres: try await PostgresServer.shared().newURL()
      }
    }

    /// Destroys the store at `url`.
    func destroy(_ url: String, in folder: String) async throws {
      switch self {
      case .sqlite:
        for name in try FileManager.default.contentsOfDirectory(atPath: folder) where name.hasPrefix("state.db") {
          try FileManager.default.removeItem(atPath: "\(folder)/\(name)")
        }
      case .postgres:
        let schema = url[(url.range(of: "search_path%3D")?.upperBound ?? url.endIndex)...]
        try await PostgresServer.shared().sql("DROP SCHEMA \(schema) CASCADE")
        try await PostgresServer.shared().sql("CREATE SCHEMA \(schema)")
      }
    }
  }

  /// The output of `store check --json`.
  private struct CheckReport: Decodable {
    struct Finding: Decodable {
      let weight: String
      let area: String
    }
    let findings: [Finding]
  }

  @Test(
    "After a restore a device opens its next socket, a revoked one does not, and no earlier proof is valid",
    arguments: Kind.allCases)
  func restored(_ kind: Kind) async throws {
    try await EchoProcess.serving { upstream in
      try await Places.withTemporaryFolder { folder in
        let (url, file) = (try await kind.newURL(in: folder), folder + "/backup")
        var plan = GatePlan()
        (plan.routes, plan.storeURL, plan.servesAndroid) = ([("/", upstream)], url, true)
        let first = try await GateProcess(plan, in: folder + "/gate")
        defer { first.process.kill() }
        let visitor = try Visitor(to: first)
        let phones = try (0..<2).map { _ in try AndroidPhone(of: first.authority) }
        for phone in phones { try await visitor.register(phone) }
        let iPhone = try Phone(of: first.authority)
        try await visitor.register(iPhone)
        let used = try phones[0].credentials(over: try await visitor.challenge())
        #expect(try await visitor.refusal(of: used) == nil)
        #expect(try await visitor.refusal(of: iPhone.credentials(over: visitor.challenge(), counter: 1)) == nil)
        #expect(try await sallyport(["keys", "revoke", phones[1].keyID, "--store", url]).status == 0)
        let unused = try phones[0].credentials(over: try await visitor.challenge())

        let backup = try await sallyport(["store", "backup", file, "--store", url])
        #expect(backup.status == 0 && backup.output.joined().contains("3 keys"), "\(backup)")
        try await first.crash()
        try await kind.destroy(url, in: folder)
        let restore = try await sallyport(["store", "restore", file, "--store", url])
        #expect(restore.status == 0, "\(restore)")
        // Two settings of the tests' server are problems, because it does not flush. The data has none.
        let check = try await sallyport(["store", "check", "--store", url, "--json"])
        #expect(check.status == (kind == .sqlite ? 0 : 1), "\(check)")
        let findings = try check.json(CheckReport.self).findings
        #expect(findings.allSatisfy { $0.area == "settings" }, "\(check)")
        #expect(findings.count { $0.weight == "problem" } == (kind == .sqlite ? 0 : 2), "\(check)")

        let second = try await GateProcess(plan, in: folder + "/gate")
        defer { second.process.kill() }
        let next = try Visitor(to: second)
        for proof in [used, unused] { #expect(try await next.refusal(of: proof) == "nonce_invalid") }
        let socket = try await next.open("/", phones[0].credentials(over: try await next.challenge()))
        #expect(try await socket.exchange(.text("back")) == .text("back"))
        #expect(try await next.refusal(of: phones[1].credentials(over: next.challenge())) == "key_revoked")
        #expect(try await next.open(as: iPhone, counter: 2).exchange(.text("back")) == .text("back"))
      }
    }
  }
}
