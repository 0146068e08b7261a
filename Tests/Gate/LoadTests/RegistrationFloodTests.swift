import ByteCoding
import Foundation
import GateProcesses
import Locking
import SimulatedDevice
import TestSupport
import Testing
import Transport
import TransportEngine

@Suite("A gate in a flood of registrations", .timeLimit(.minutes(10)))
struct RegistrationFloodTests {
  /// How attestations that do not hold are made, the dearer ones for the gate last.
  enum Garbage: String, CaseIterable, Sendable {
    /// Bytes that are no CBOR.
    case noise
    /// Of an authority that nobody trusts.
    case rogue
    /// Genuine, and for another nonce: everything but the last step is verified.
    case stale
  }

  @Test("verifies garbage as fast as it comes, and an honest device still logs in", arguments: Garbage.allCases)
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
        let times = try await Self.logIn(phone, at: gate, count: Exhaustion.isWanted ? 200 : 30)
        isOver.update { $0 = true }
        _ = try await attackers
        let refused = refusals.withLock { $0 }
        print(
          "LoadTests: registrations that are \(garbage): \(refused); a login takes \(times[times.count / 2]), at worst "
            + "\(times[times.count - 1])")
        #expect(refused.values.reduce(0, +) >= Sanitizer.reduce(20) && refused.keys.allSatisfy { $0 != "none" })
        #expect(times[times.count / 2] < .seconds(1), "the median")
        expectMemory(try figures.peakMemory - before, below: 32 << 20, "for registrations that are \(garbage)")
      }
    }
  }

  /// The bodies of registrations, each with the nonce that it is given.
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

  /// How long each login took, from its challenge to its first answer, the shortest first.
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
  /// The code with which a registration is refused; `none` if it is not.
  fileprivate func registrationRefusal(of body: [UInt8]) async throws -> String {
    let headers = HeaderFields([
      .init(name: "Host", value: "localhost"), .init(name: "Content-Type", value: "application/json"),
    ])
    let answer = try await connection().send("POST", "/attest/register", headers: headers, body: body)
    return answer.headers.first("X-Attest-Error") ?? "none"
  }
}
