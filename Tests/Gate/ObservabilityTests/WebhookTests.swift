import ByteCoding
import Foundation
import GateProcesses
import SimulatedDevice
import TestSupport
import Testing
import Transport

/// A receiver that verifies each message by the reference library of Standard Webhooks.
private struct Receiver {
  static let packages = PythonPackages(
    name: "webhooks-python", packages: ["standardwebhooks==1.1.0"], modules: "import standardwebhooks.webhooks")
  static let secret = "whsec_" + Base64.encode(Array(0..<32))

  struct Request: Decodable {
    struct Message: Decodable {
      let type: String
      let timestamp: String
      let data: [String: JSONScalar]
    }
    let id: String
    let path: String
    let type: String
    let status: Int
    let message: Message?
    let error: String?
  }

  let process: ChildProcess
  let port: UInt16

  /// - Parameter answers: The statuses of the first answers.
  init(_ arguments: [String] = [], answers: String = "") async throws {
    process = try ChildProcess(
      Self.packages.python, [ProjectFile.path("Tests/Gate/Programs/webhook_receiver.py"), Self.secret] + arguments,
      environment: ["RECEIVER_ANSWERS": answers])
    let line = try await process.output.first("the port") { $0.contains("port") }
    port = try #require(JSONDecoder().decode([String: UInt16].self, from: Data(line.utf8))["port"])
  }

  /// The first `count` requests with the message `type`.
  func requests(_ count: Int, of type: String) async throws -> [Request] {
    try await process.output.first(count, "messages \(type)", within: .seconds(60)) { $0.contains("\"\(type)\"") }
      .map { try JSONDecoder().decode(Request.self, from: Data($0.utf8)) }
  }
}

@Suite(
  "Webhooks of a running gate", .serialized, .timeLimit(.minutes(5)),
  .enabled("standardwebhooks cannot be installed: it needs python3-venv and PyPI") {
    await Receiver.packages.arePresent()
  })
struct WebhookTests {
  @Test("Registration, revocation and many refusals arrive, signed, over TLS; a refused message comes again")
  func events() async throws {
    try await Places.withTemporaryFolder { folder in
      let authority = AuthorityFolder(path: folder + "/receiver")
      _ = try authority.loadOrMake(appID: "SALLYPORT1.com.example.app", at: .now())
      let receiver = try await Receiver(
        [authority.serverCertificatePath, authority.serverKeyPath], answers: "503")
      defer { receiver.process.kill() }
      try "\(Receiver.secret)\n".write(toFile: folder + "/secret", atomically: true, encoding: .utf8)
      try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: folder + "/secret")
      var plan = GatePlan()
      plan.admin = "{ listen: \"unix:DIR/admin.sock\" }"
      plan.further = """
        webhooks:
          url: https://localhost:\(receiver.port)/hook?of=gate
          secret_file: \(folder)/secret
          ca_file: \(authority.tlsAuthorityPath)
          refusals_per_minute: 20
        """
      try await GateProcess.serving(plan) { gate in
        let visitor = try Visitor(to: gate)
        let phone = try Phone(of: gate.authority)
        try await visitor.register(phone)
        let registered = try await receiver.requests(2, of: "key.registered")
        #expect(registered.map(\.status) == [503, 204] && registered[0].id == registered[1].id)
        let first = try #require(registered[0].message)
        let key = try #require(first.data["key"])
        #expect(first.data["platform"] == .text("ios") && first.data["app"] == .text("SALLYPORT1.com.example.app"))
        #expect(registered[0].path == "/hook?of=gate" && registered[0].type == "application/json")
        for _ in 0..<20 { #expect(try await visitor.refusal(of: HeaderFields()) == "no_credentials") }
        let revocation = try await ChildProcess.run(
          Places.product("sallyport"), ["keys", "revoke", "-c", gate.folder.path + "/gate.yaml", "--", phone.keyID])
        #expect(revocation.exit == .code(0), "\(revocation)")
        let revoked = try await receiver.requests(1, of: "key.revoked")[0].message
        #expect(revoked?.data == ["key": key, "by": .text("operator")])
        let began = try await receiver.requests(1, of: "refusals.began")[0].message
        #expect(began?.data["count"] == .number(20))
        #expect(receiver.process.output.lines.allSatisfy { !$0.contains("\"error\"") })
      }
    }
  }
}
