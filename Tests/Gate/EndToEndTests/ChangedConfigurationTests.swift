import Testing
import TestSupport
import Transport
import TransportEngine

@Suite("Restart with another configuration", .timeLimit(.minutes(10)))
struct ChangedConfigurationTests {
  /// A new configuration that refuses a key which the old configuration registered.
  struct Change: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let configuration: GateConfiguration
    let code: String
    let text: String
    let step: String
  }

  static let changes = [
    Change(
      testDescription: "another app", configuration: GateConfiguration(bundleID: "com.example.successor"),
      code: "rp_id_mismatch", text: "rpIdHash does not match bundleId", step: "app_not_served"),
    Change(
      testDescription: "another environment", configuration: GateConfiguration(environment: "production"),
      code: "environment_mismatch", text: "Keys of this App Attest environment are not accepted", step: "environment"),
  ]

  @Test(
    "A gate refuses the keys of an app that it no longer serves, and admits them when it serves the app again",
    arguments: changes)
  func restarted(change: Change) async throws {
    let backend = try await EchoBackend()
    let original = GateConfiguration(upstream: backend.upstream)
    try await Places.withTemporaryFolder { folder in
      let device = try await serving(original, in: folder) { gate in
        let device = try await Visitor(gate).registeredDevice()
        try await expectAdmission(of: device, count: 1, at: gate)
        return device
      }
      try await serving(change.configuration, in: folder) { gate in
        let visitor = try Visitor(gate)
        let refused = try await visitor.refusal(of: device.headers(over: visitor.challenge(), count: 2))
        #expect(refused.status == 403)
        #expect(String(decoding: refused.body, as: UTF8.self) == change.text)
        #expect(refused.headers.first("X-Attest-Error") == change.code)
        let entry = try await gate.log.refusal(of: refused.headers.first("X-Request-Id") ?? "")
        #expect(entry.step == change.step)
        #expect(entry.code == change.code)
        #expect(entry.status == 403)
      }
      // The refusal did not change the counter.
      try await serving(original, in: folder) { try await expectAdmission(of: device, count: 2, at: $0) }
    }
  }

  private func serving<R>(
    _ configuration: GateConfiguration, in folder: String, _ body: (RunningGate) async throws -> R
  ) async throws -> R {
    let gate = try await RunningGate(configuration, in: folder)
    defer { gate.process.kill() }
    return try await body(gate)
  }

  private func expectAdmission(of device: TestDevice, count: UInt32, at gate: RunningGate) async throws {
    let visitor = try Visitor(gate)
    try await expectEcho(over: visitor.open(device.headers(over: visitor.challenge(), count: count)))
  }
}
