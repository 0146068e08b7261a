import AndroidKeyAttestation
import AttestGate
import ByteCoding
import Cryptography
import GateProcesses
import PostgresServers
import PostgresStore
import SQLiteStore
import SimulatedDevice
import TestSupport
import Testing
import Transport
import TransportEngine

@Suite("Gates that share a database share their state", .serialized)
struct SharedStateTests {
  /// A gate closes the sockets of a revoked key within two seconds. A busy machine may need longer; a gate that misses
  /// the change closes nothing.
  private static let closingTime = Duration.seconds(60)

  @Test("Of 50 upgrades with one nonce over two gates exactly one is admitted, in 20 rounds")
  func race() async throws {
    try await TwoGates.serving(on: .shared()) { gates in
      let phone = try await gates.registeredPhone()
      for round in UInt32(0)..<20 {
        let nonce = try await gates.visitors[Int(round) % 2].challenge()
        let refusals = try await withThrowingTaskGroup(of: String?.self) { group in
          for number in UInt32(0)..<50 {
            let credentials = try phone.credentials(over: nonce, counter: round * 50 + number + 1)
            group.addTask { try await gates.visitors[Int(number) % 2].refusal(of: credentials) }
          }
          return try await group.reduce(into: [String?: Int]()) { $0[$1, default: 0] += 1 }
        }
        #expect(refusals[nil] == 1, "round \(round): \(refusals)")
        let others = Set(refusals.keys.compactMap { $0 })
        #expect(others.isSubset(of: ["nonce_used", "counter_replayed"]), "round \(round): \(refusals)")
      }
    }
  }

  @Test("Of 50 upgrades with one proof of Android over two gates exactly one is admitted, in 10 rounds")
  func androidRace() async throws {
    try await TwoGates.serving(on: .shared(), .android) { gates in
      let phone = try AndroidPhone(of: gates.gates[0].authority)
      try await gates.visitors[0].register(phone)
      for round in 0..<10 {
        let credentials = try phone.credentials(over: try await gates.visitors[round % 2].challenge())
        let refusals = try await withThrowingTaskGroup(of: String?.self) { group in
          for number in 0..<50 {
            group.addTask { try await gates.visitors[number % 2].refusal(of: credentials) }
          }
          return try await group.reduce(into: [String?: Int]()) { $0[$1, default: 0] += 1 }
        }
        #expect(refusals == [nil: 1, "nonce_used": 49], "round \(round)")
      }
    }
  }

  @Test("A certificate that enters the status list closes the sockets of its keys on both gates")
  func androidRevocation() async throws {
    try await TwoGates.serving(on: .shared(), .android) { gates in
      let phone = try AndroidPhone(of: gates.gates[0].authority)
      try await gates.visitors[0].register(phone)
      let other = try await gates.registeredPhone()
      var sockets: [ClientWebSocket] = []
      for visitor in gates.visitors {
        sockets.append(try await visitor.open("/", phone.credentials(over: try await visitor.challenge())))
      }
      let untouched = try await gates.visitors[1].open(as: other, counter: 1)
      let batch = try #require(gates.gates[0].authority.android?.trustedEnvironment.key.certificate.serialNumber)
      let start = ContinuousClock.now
      _ = try gates.gates[0].folder.revokeAndroidKeys(serials: [AndroidStatusList.text(ofSerial: batch)])
      for socket in sockets {
        let (code, after) = try await ending(of: socket, since: start)
        #expect(code == 3003 && after < Self.closingTime)
      }
      #expect(try await untouched.exchange(.text("still here")) == .text("still here"))
    }
  }

  @Test("A revoked key's sockets close on both gates with 3003, others stay; a restored key opens new ones")
  func revocation() async throws {
    try await TwoGates.serving(on: .shared()) { gates in
      let (phone, other) = (try await gates.registeredPhone(), try await gates.registeredPhone())
      let sockets = [
        try await gates.visitors[0].open(as: phone, counter: 1),
        try await gates.visitors[1].open(as: phone, counter: 2),
      ]
      let untouched = try await gates.visitors[1].open(as: other, counter: 1)
      let start = ContinuousClock.now
      #expect(try await gates.store.revoke(phone.registeredID, at: .now()))
      for socket in sockets {
        let (code, after) = try await ending(of: socket, since: start)
        #expect(code == 3003)
        #expect(after < Self.closingTime)
      }
      #expect(try await untouched.exchange(.text("still here")) == .text("still here"))
      for visitor in gates.visitors {
        let credentials = try phone.credentials(over: await visitor.challenge(), counter: 9)
        #expect(try await visitor.refusal(of: credentials) == "key_revoked")
      }
      #expect(try await gates.store.restore(phone.registeredID))
      let reopened = try await gates.visitors[1].open(as: phone, counter: 10)
      #expect(try await reopened.exchange(.text("back")) == .text("back"))
    }
  }

  @Test("The sockets of a removed key are closed")
  func removal() async throws {
    try await TwoGates.serving(on: .shared()) { gates in
      let phone = try await gates.registeredPhone()
      let socket = try await gates.visitors[1].open(as: phone, counter: 1)
      let start = ContinuousClock.now
      #expect(try await gates.store.remove([phone.registeredID], unusedSince: nil) == 1)
      let (code, after) = try await ending(of: socket, since: start)
      #expect(code == 3003)
      #expect(after < Self.closingTime)
    }
  }

  @Test("Immediately after a rotation by one node, all gates accept nonces of the old and the new key")
  func rotation() async throws {
    try await TwoGates.serving(on: .shared()) { gates in
      let phone = try await gates.registeredPhone()
      let old = try await gates.visitors[0].challenge()
      let operatorsNode = Challenges(storage: gates.store)
      #expect(try await operatorsNode.rotate(at: .now()))
      // Issued with a key that the gates may not have loaded yet.
      let new = try #require(operatorsNode.issue(at: .now())?.nonce.text)
      #expect(try await gates.visitors[1].refusal(of: phone.credentials(over: new, counter: 1)) == nil)
      #expect(try await gates.visitors[0].refusal(of: phone.credentials(over: new, counter: 2)) == "nonce_used")
      #expect(try await gates.visitors[1].refusal(of: phone.credentials(over: old, counter: 3)) == nil)
    }
  }

  @Test("With SQLite, a revocation by another process closes the key's sockets")
  func otherProcess() async throws {
    try await EchoProcess.serving { upstream in
      var plan = GatePlan()
      plan.routes = [("/", upstream)]
      try await GateProcess.serving(plan) { gate in
        let visitor = try Visitor(to: gate)
        let phone = try Phone(of: gate.authority)
        try await visitor.register(phone)
        let socket = try await visitor.open(as: phone, counter: 1)
        let store = SQLiteStore(path: gate.folder.path + "/state.db")
        let start = ContinuousClock.now
        #expect(try await store.revoke(phone.registeredID, at: .now()))
        let (code, after) = try await ending(of: socket, since: start)
        #expect(code == 3003)
        #expect(after < Self.closingTime)
        await store.close()
      }
    }
  }
}

extension GatePlan {
  /// A gate for both platforms.
  fileprivate static var android: GatePlan {
    var plan = GatePlan()
    plan.servesAndroid = true
    return plan
  }
}
