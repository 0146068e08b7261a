import AppAttest
import AttestGate
import ByteCoding
import Dispatch
import GateFixtures
import Locking
import SQLiteStore
import SimulatedDevice
import Testing
import Transport

@testable import GateService

/// Requests of unknown senders hold every thread that works for them, as the most expensive accepted request would.
@Suite("While requests of unknown senders hold every thread that works for them", .timeLimit(.minutes(2)))
struct HeldExecutorTests {
  /// Stops threads in the middle of a verification until the test lets them go.
  private final class Hold: Sendable {
    private struct State {
      var isArmed = false
      var held: [Stopwatch.Work: Int] = [:]
      var hasGivenUp = false
    }
    private let state = LockedValue(State())
    private let release = DispatchSemaphore(value: 0)

    var stopwatch: Stopwatch { Stopwatch { [self] work, _ in pass(work) } }

    func arm() { state.withLock { $0.isArmed = true } }
    func held(_ work: Stopwatch.Work) -> Int { state.withLock { $0.held[work] ?? 0 } }
    /// Whether a thread went on by itself, so that a test that hangs ends.
    var hasGivenUp: Bool { state.withLock { $0.hasGivenUp } }

    func letGo(_ threads: Int) {
      state.withLock { $0.isArmed = false }
      for _ in 0..<threads { release.signal() }
    }

    private func pass(_ work: Stopwatch.Work) {
      let isHeld = state.withLock { state in
        guard state.isArmed, work == .attestation || work == .assertion else { return false }
        state.held[work, default: 0] += 1
        return true
      }
      guard isHeld else { return }
      if release.wait(timeout: .now() + .seconds(5)) == .timedOut {
        state.withLock { ($0.hasGivenUp, $0.isArmed) = (true, false) }
      }
    }
  }

  private static let count = 24

  private let hold = Hold()
  private let bench: GateBench
  private let service: ServiceBench

  init() throws {
    bench = try GateBench(limiter: VerificationLimiter(width: 64), stopwatch: hold.stopwatch)
    service = try ServiceBench(bench)
  }

  /// Registrations and token requests, all of which are accepted.
  private func requests() async throws -> [Request] {
    var requests: [Request] = []
    for _ in 0..<Self.count {
      let (device, nonce) = (try bench.device(), try bench.nonce())
      requests.append(try .registration(device.registration(over: nonce, at: bench.clock.now)))
    }
    for _ in 0..<Self.count {
      let (device, nonce) = (try await bench.registeredDevice(), try bench.nonce())
      let proof = try ProofMint(nonce: nonce.text, at: bench.clock.now).text
      requests.append(.token(try device.fields(over: nonce, count: 1), proof: proof))
    }
    return requests
  }

  @Test("a revocation closes a session, a probe is answered and an operator's command is executed")
  func holds() async throws {
    let (revoked, other) = (try await bench.registeredDevice(), try await bench.registeredDevice())
    let requests = try await requests()
    let order = try await service.order(for: .upgrade(revoked.fields(over: bench.nonce(), count: 1)))
    defer { withExtendedLifetime(order) {} }
    let closes = LockedValue<[CloseCode]>([])
    order.opened(SessionControl { code, _ in closes.withLock { $0.append(code) } })
    let response = ChangeResponse(
      registry: bench.store, challenges: bench.challenges, identityKeys: bench.identityKeys,
      sessions: service.sessions, logger: service.log.logger)
    let follower = ChangeFollower(bench.store, sessions: service.sessions, response: response, every: .milliseconds(20))
    let following = Task { await follower.run() }
    let router = AdminRouter(
      [HealthResource([]), KeyResource(store: bench.store, sessions: nil, logger: service.log.logger)],
      access: .anyone)

    hold.arm()
    let (begun, answers) = (LockedValue(0), LockedValue<[Int]>([]))
    let clients = requests.map { request in
      Task {
        begun.withLock { $0 += 1 }
        let status = (try? await service.answer(to: request))?.status ?? 0
        answers.withLock { $0.append(status) }
      }
    }
    while begun.withLock({ $0 }) < requests.count || hold.held(.attestation) == 0 || hold.held(.assertion) == 0 {
      guard !hold.hasGivenUp else { break }
      try await Task.sleep(for: .milliseconds(5))
    }

    let isRevoked = try await bench.store.revoke(revoked.keyID, at: bench.clock.now)
    while closes.withLock({ $0.isEmpty }) { try await Task.sleep(for: .milliseconds(5)) }
    let probe = try await status(of: "GET", "/livez", at: router)
    let command = try await status(of: "POST", "/v1/keys/\(KeyHash(of: other.keyID).text)/revoke", at: router)
    let isExecuted = try await bench.store.record(of: other.keyID)?.revokedAt != nil

    // All of that came before any of the held requests.
    #expect(answers.withLock { $0 } == [] && !hold.hasGivenUp)
    // The stub stays open: each look at the store closes it again.
    #expect(isRevoked && closes.withLock { $0 }.allSatisfy { $0 == .revoked })
    #expect(probe == 200 && command == 200 && isExecuted)
    hold.letGo(requests.count)
    for client in clients { await client.value }
    #expect(answers.withLock { $0 } == Array(repeating: 200, count: requests.count))
    following.cancel()
    await following.value
  }

  private func status(of method: String, _ path: String, at router: AdminRouter) async throws -> Int {
    let request = Request(id: "id", method: method, target: path, path: path, headers: HeaderFields(), body: [])
    guard case .respond(let response) = await router.respond(to: request, from: ServiceBench.peer) else {
      throw ServiceBench.Unexpected.relayed
    }
    return response.status
  }
}
