import ByteCoding
import Cryptography
import Foundation
import TestSupport
import Testing
import Transport

@Suite("Forward auth by other vendors' proxies", .serialized, .timeLimit(.minutes(10)))
struct ForwardAuthTests {
  /// Runs a recording backend behind a proxy that asks a gate, and calls `body` with a client of the proxy.
  private func serving(
    _ kind: OuterProxy, _ configuration: GateConfiguration = GateConfiguration(),
    _ body: (_ client: Visitor, Witness, RunningGate) async throws -> Void
  ) async throws {
    let witness = try await Witness()
    defer { witness.process.kill() }
    try await RunningGate.serving(configuration) { gate in
      let proxy = try await kind.start(gate, backend: witness.port)
      defer { proxy.process.kill() }
      try await body(Visitor(proxy), witness, gate)
    }
  }

  /// Every variant of the gate's identity headers that a client may send: each name in three cases, and with each
  /// separator that a server could read as a hyphen, in place of one hyphen or of all.
  private static let spoofs = HeaderFields(
    ["X-Attest-Assertion", "X-Attest-Key-Id", "X-Attest-App", "X-Attest-Method", "X-Attest-Error"].flatMap(variants)
      .map { HeaderFields.Field(name: $0, value: "spoofed") })

  private static func variants(of name: String) -> [String] {
    let separated = ["_", ".", "!"].flatMap { separator in
      [
        name.replacing("-", with: separator), name.replacing("-", with: separator, maxReplacements: 1),
        "X-" + name.dropFirst(2).replacing("-", with: separator),
      ]
    }
    return [name, name.lowercased(), name.uppercased()] + separated
  }

  @Test("A device registers through the proxy, opens a socket and exchanges messages", arguments: OuterProxy.allCases)
  func device(_ kind: OuterProxy) async throws {
    let backend = try await EchoBackend()
    defer { backend.process.kill() }
    try await RunningGate.serving { gate in
      let port = try #require(backend.upstream.split(separator: ":").last.flatMap { Int($0) })
      let proxy = try await kind.start(gate, backend: port)
      defer { proxy.process.kill() }
      let (exit, output, errors) = try await ChildProcess.run(
        Places.product("attest"),
        ["connect", "wss://localhost:\(proxy.port)/", "--authority", gate.folder, "--once", "hello"],
        environment: [String: String?].gateless.merging(["XDG_DATA_HOME": gate.folder]) { $1 }, within: .seconds(30))
      #expect(exit == .code(0), "\(errors)")
      #expect(output == ["hello"])
      let headers = try await backend.firstHeaders()
      #expect(headers["x-attest-key-id"]?.count == 43)
      #expect(headers["x-attest-app"] == GateConfiguration.appID && headers["x-attest-method"] == "app-attest")
      let assertion = try #require(headers["x-attest-assertion"])
      #expect(try await DocumentedVerifier(gate: gate).verify([assertion]).first?["app"] as? String != nil)
      for name in ["keyid", "data", "nonce"] { #expect(headers["x-app-assert-\(name)"] == nil) }
    }
  }

  @Test(
    "A client without an assertion, with a used one, or with a revoked key does not reach the backend",
    arguments: OuterProxy.allCases)
  func refused(_ kind: OuterProxy) async throws {
    try await serving(kind) { client, witness, gate in
      let none = try await client.refusal(of: Self.spoofs)
      #expect(none.status == 401 && none.headers.first("X-Attest-Error") == "no_credentials")
      #expect(try witness.connectionCount == 0)
      let device = try await client.registeredDevice()
      let proof = try device.headers(over: await client.challenge())
      _ = try await client.open(proof)
      #expect(try await client.refusal(of: proof).headers.first("X-Attest-Error") == "nonce_used")
      try StateFile(of: gate).revoke(device)
      let revoked = try await client.refusal(of: device.headers(over: await client.challenge(), count: 2))
      #expect(revoked.status == 403 && revoked.headers.first("X-Attest-Error") == "key_revoked")
      #expect(try witness.connectionCount == 1)
    }
  }

  @Test(
    "Identity headers of a client never reach the backend, with or without the gate's own, in any variant",
    arguments: OuterProxy.allCases, ["enforce", "off"])
  func spoofing(_ kind: OuterProxy, enforcement: String) async throws {
    try await serving(kind, GateConfiguration(enforcement: enforcement)) { client, witness, _ in
      let device = try await client.registeredDevice()
      _ = try await client.open(device.headers(over: await client.challenge()).appending(Self.spoofs))
      let head = try await witness.head(1)
      #expect(!head.contains { $0.contains("spoofed") }, "\(head)")
      let expected = enforcement == "off" ? "none" : "app-attest"
      // HAProxy writes header names in lowercase.
      #expect(head.map { $0.lowercased() }.filter { $0.contains("attest-method") } == ["x-attest-method: \(expected)"])
    }
  }

  @Test("Without the gate no client reaches the backend", arguments: OuterProxy.allCases)
  func gateGone(_ kind: OuterProxy) async throws {
    try await serving(kind) { client, witness, gate in
      gate.process.kill()
      _ = try await gate.process.exit()
      #expect(try await client.refusal(of: Self.spoofs).status >= 500)
      #expect(try witness.connectionCount == 0)
    }
  }
}
