import ByteCoding
import Foundation
import GateProcesses
import Locking
import SimulatedDevice
import TestSupport
import Testing
import Transport
import TransportEngine

@Suite("Flood of registrations", .timeLimit(.minutes(10)))
struct RegistrationFloodTests {
  /// Kinds of invalid attestations, in ascending order of their cost for the gate.
  enum Garbage: String, CaseIterable, Sendable {
    /// Bytes that are not CBOR.
    case noise
    /// An attestation by an untrusted authority.
    case rogue
    /// A genuine attestation for another nonce: the gate verifies everything except the last step.
    case stale
  }

  @Test(
    "A gate refuses invalid attestations as they arrive, and a genuine device still logs in",
    arguments: Garbage.allCases)
  func flood(_ garbage: Garbage) async throws {
    try await EchoProcess.serving { upstream in
      var plan = GatePlan()
      plan.routes = [("/", upstream)]
      try await GateProcess.serving(plan) { gate in
        let figures = ProcessFigures(of: gate)
        let phone = try Phone(of: gate.authority)
        try await Visitor(to: gate).register(phone)
        let body = try Self.body(of: garbage, for: gate)
        let isOver = Watched(false)
        let refusals = LockedValue<[String: Int]>([:])
        try figures.forgetPeak()
        let before = try figures.memory
        async let attackers: [Void] = gather(8, workers: 8) { _ in
          let visitor = try Visitor(to: gate)
          while !isOver.value, !Task.isCancelled {
            let code = try await visitor.registrationRefusal(of: body(visitor.challenge()))
            refusals.withLock { $0[code, default: 0] += 1 }
          }
        }
        // While the attack goes on.
        let times = try await Self.logIn(phone, at: gate, count: Exhaustion.isWanted ? 200 : 30)
        isOver.update { $0 = true }
        _ = try await attackers
        let refused = refusals.withLock { $0 }
        print(
          "LoadTests: registrations of kind \(garbage): \(refused); a login takes \(times[times.count / 2]), at worst "
            + "\(times[times.count - 1])")
        #expect(refused.values.reduce(0, +) >= Sanitizer.reduce(20) && refused.keys.allSatisfy { $0 != "none" })
        expectMemory(try figures.peakMemory - before, below: 32 << 20, "for registrations of kind \(garbage)")
      }
    }
  }

  /// Returns a function that makes the body of a registration with a nonce.
  private static func body(
    of garbage: Garbage, for gate: GateProcess
  ) throws -> @Sendable (_ nonce: String) -> [UInt8] {
    let old = String(repeating: "0", count: 64)
    switch garbage {
    case .noise:
      let noise = Base64.encode(Array(repeating: 0xFF, count: 40_000))
      let keyID = Base64.encode(Array(repeating: 1, count: 32))
      return { Array(#"{"keyId":"\#(keyID)","attestation":"\#(noise)","nonce":"\#($0)"}"#.utf8) }
    case .rogue, .stale:
      let authority =
        garbage == .stale ? gate.authority : try TestAuthority(appID: gate.authority.appID, at: .now())
      let text = String(decoding: try Phone(of: authority).registration(over: old), as: UTF8.self)
      return { nonce in Array(text.replacingOccurrences(of: old, with: nonce).utf8) }
    }
  }

  /// Returns the durations of the logins, from the challenge to the first answer, in ascending order.
  private static func logIn(_ phone: Phone, at gate: GateProcess, count: Int) async throws -> [Duration] {
    let visitor = try Visitor(to: gate)
    var times: [Duration] = []
    for number in 1...count {
      let start = ContinuousClock.now
      let socket = try await visitor.open(as: phone, counter: UInt32(number))
      #expect(try await socket.exchange(.text("honest")) == .text("honest"))
      times.append(start.duration(to: .now))
      await socket.close()
    }
    return times.sorted()
  }
}

extension Visitor {
  /// Returns the code with which a registration is refused; `none` if it succeeds.
  fileprivate func registrationRefusal(of body: [UInt8]) async throws -> String {
    let headers = HeaderFields([
      .init(name: "Host", value: "localhost"), .init(name: "Content-Type", value: "application/json"),
    ])
    let answer = try await connection().send("POST", "/attest/register", headers: headers, body: body)
    return answer.headers.first("X-Attest-Error") ?? "none"
  }
}
