import GateFixtures
import Wire
import Locking
import Testing

@testable import AttestGate

@Suite("The concurrency limiter of registrations")
struct VerificationLimiterTests {
  @Test("The limiter runs at most `width` verifications at a time, and the others in the order of their arrival")
  func turns() async {
    let limiter = VerificationLimiter(width: 2)
    await limiter.begin()
    await limiter.begin()
    let order = LockedValue<[Int]>([])
    await withTaskGroup(of: Void.self) { group in
      for number in 0..<4 {
        group.addTask {
          await limiter.begin()
          order.withLock { $0.append(number) }
        }
        while limiter.countOfWaiting <= number, !Task.isCancelled { await Task.yield() }
      }
      #expect(order.withLock { $0 } == [])
      for finished in 1...4 {
        limiter.end()
        while order.withLock({ $0.count }) < finished, !Task.isCancelled { await Task.yield() }
        #expect(order.withLock { $0 } == Array(0..<finished))
      }
    }
    limiter.end()
    limiter.end()
    #expect(await limiter.inTurn { true })
  }

  @Test("The limiter runs at least one verification, for any width")
  func narrow() async {
    #expect(await VerificationLimiter(width: 0).inTurn { true })
  }

  @Test("Work beyond the capacity is refused immediately, and success and failure free the slot")
  func room() async throws {
    let limiter = VerificationLimiter(width: 1, capacity: 1)
    for outcome in [nil, Denial.keyExists] {
      do throws(Denial) {
        try await limiter.holding { () throws(Denial) in
          await #expect(throws: Denial.tooManyRegistrations) { try await limiter.holding {} }
          if let outcome { throw outcome }
        }
      } catch {
        #expect(error == outcome)
      }
    }
  }

  @Test("A full limiter refuses registrations without spending their nonces, and does not affect admissions")
  func full() async throws {
    let limiter = VerificationLimiter(width: 1, capacity: 1)
    let bench = try GateBench(limiter: limiter)
    let registered = try await bench.registeredDevice()
    let claim = try bench.device().registration(over: bench.nonce(), at: bench.clock.now)
    try await limiter.holding { () throws(Denial) in
      await #expect(throws: Denial.tooManyRegistrations) { try await bench.registrar.register(claim) }
      await #expect(throws: Never.self) {
        try await bench.gate.admit(registered.claim(over: bench.nonce(), count: 1))
      }
    }
    #expect(Denial.tooManyRegistrations.code == .overloaded)
    #expect(try await bench.registrar.register(claim).isRepetition == false)
  }
}
