import AttestGate
import ByteCoding
import GateProcesses
import PostgresServers
import PostgresStore
import SimulatedDevice
import TestSupport
import Testing
import Transport
import TransportEngine

/// Two gates that count the keys of an Android device in their shared store.
@Suite("Android devices with many keys, at two gates", .serialized, .timeLimit(.minutes(5)))
struct AttestationKeyRiskTests {
  private static func plan(_ risk: String) -> GatePlan {
    var plan = GatePlan()
    (plan.servesAndroid, plan.androidRisk) = (true, risk)
    return plan
  }

  /// Registers `count` keys of one phone, at both gates in turn.
  private static func keys(_ count: Int, of device: SimulatedDeviceName, at gates: TwoGates) async throws
    -> [AndroidPhone]
  {
    var keys: [AndroidPhone] = []
    for number in 0..<count {
      let phone = try AndroidPhone(of: gates.gates[0].authority, device: device)
      try await gates.visitors[number % 2].register(phone)
      keys.append(phone)
    }
    return keys
  }

  private static func refusal(of phone: AndroidPhone, at visitor: Visitor) async throws -> String? {
    try await visitor.refusal(of: phone.credentials(over: await visitor.challenge()))
  }

  /// Waits for a gate to hear of a change.
  private static func wait(for code: String, of phone: AndroidPhone, at visitor: Visitor) async throws {
    for _ in 0..<1200 {
      if try await refusal(of: phone, at: visitor) == code { return }
      try await Task.sleep(for: .milliseconds(50))
    }
    Issue.record("waited too long for \(code)")
  }

  @Test("A device with twenty keys is refused with each, also with one that was admitted before; another device is not")
  func refused() async throws {
    try await TwoGates.serving(on: .shared(), Self.plan("threshold: 10, action: refuse")) { gates in
      let device = SimulatedDeviceName()
      let first = try await Self.keys(1, of: device, at: gates)[0]
      for visitor in gates.visitors { #expect(try await Self.refusal(of: first, at: visitor) == nil) }
      let socket = try await gates.visitors[1].open("/", first.credentials(over: await gates.visitors[1].challenge()))
      let others = try await Self.keys(19, of: device, at: gates)
      for visitor in gates.visitors {
        try await Self.wait(for: "risk_too_high", of: first, at: visitor)
        for phone in [others[0], others[18]] {
          #expect(try await Self.refusal(of: phone, at: visitor) == "risk_too_high")
        }
      }
      #expect(try await socket.exchange(.text("still here")) == .text("still here"))
      let honest = try await Self.keys(1, of: SimulatedDeviceName(), at: gates)[0]
      let shared = try AndroidPhone(of: gates.gates[0].authority)
      try await gates.visitors[0].register(shared)
      for visitor in gates.visitors {
        for phone in [honest, shared] { #expect(try await Self.refusal(of: phone, at: visitor) == nil) }
      }
      #expect(
        try await gates.store.keys(KeySelection(risk: .metric(20...20)), after: nil, limit: 50).records.count == 20)
    }
  }

  @Test("With revoke, the key above the threshold closes the sockets of all keys of the device on both gates")
  func revoked() async throws {
    try await TwoGates.serving(on: .shared(), Self.plan("threshold: 2, action: revoke")) { gates in
      let device = SimulatedDeviceName()
      let keys = try await Self.keys(2, of: device, at: gates)
      let honest = try await Self.keys(1, of: SimulatedDeviceName(), at: gates)[0]
      var sockets: [ClientWebSocket] = []
      for (phone, visitor) in zip(keys, gates.visitors) {
        sockets.append(try await visitor.open("/", phone.credentials(over: try await visitor.challenge())))
      }
      let untouched = try await gates.visitors[0].open("/", honest.credentials(over: gates.visitors[0].challenge()))
      let third = try await Self.keys(1, of: device, at: gates)[0]
      for socket in sockets { #expect(try await ending(of: socket, since: .now).code == 3003) }
      #expect(try await untouched.exchange(.text("still here")) == .text("still here"))
      for visitor in gates.visitors { try await Self.wait(for: "risk_too_high", of: third, at: visitor) }
      #expect(try await gates.store.keys(KeySelection(isRevoked: true), after: nil, limit: 10).records.count == 3)
      // The gate that registered the third key reports all of them, and the other one none.
      let reported = try await gates.gates[0].process.errors.first(3, "the reports") {
        $0.contains("key revoked by risk metric")
      }
      #expect(Set(reported).count == 3)
      #expect(!gates.gates[1].process.errors.lines.contains { $0.contains("key revoked by risk metric") })
    }
  }
}
