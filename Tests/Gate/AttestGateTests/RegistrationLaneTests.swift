import GateFixtures
import Locking
import Testing

@testable import AttestGate

@Suite("The lane of registrations")
struct RegistrationLaneTests {
  @Test("verifies so many at once, and the others in the order of their arrival")
  func turns() async {
    let lane = RegistrationLane(width: 2)
    await lane.begin()
    await lane.begin()
    let order = Guarded<[Int]>([])
    await withTaskGroup(of: Void.self) { group in
      for number in 0..<4 {
        group.addTask {
          await lane.begin()
          order.withLock { $0.append(number) }
        }
        while lane.countOfWaiting <= number { await Task.yield() }
      }
      #expect(order.withLock { $0 } == [])
      for finished in 1...4 {
        lane.end()
        while order.withLock({ $0.count }) < finished { await Task.yield() }
        #expect(order.withLock { $0 } == Array(0..<finished))
      }
    }
    lane.end()
    lane.end()
    #expect(await lane.inTurn { true })
  }

  @Test("always verifies one, whatever it was told")
  func narrow() async {
    #expect(await RegistrationLane(width: 0).inTurn { true })
  }

  @Test("refuses at once what it has no room for, and has room again after a failure as after a success")
  func room() async throws {
    let lane = RegistrationLane(width: 1, capacity: 1)
    for outcome in [nil, Denial.keyExists] {
      do throws(Denial) {
        try await lane.holding { () throws(Denial) in
          await #expect(throws: Denial.tooManyRegistrations) { try await lane.holding {} }
          if let outcome { throw outcome }
        }
      } catch {
        #expect(error == outcome)
      }
    }
  }

  @Test("keeps registrations out while it is full, spends nothing of theirs, and leaves admissions alone")
  func full() async throws {
    let lane = RegistrationLane(width: 1, capacity: 1)
    let bench = try GateBench(lane: lane)
    let registered = try await bench.registeredDevice()
    let claim = try bench.device().registration(over: bench.nonce(), at: bench.clock.now)
    try await lane.holding { () throws(Denial) in
      await #expect(throws: Denial.tooManyRegistrations) { try await bench.registrar.register(claim) }
      await #expect(throws: Never.self) {
        try await bench.gate.admit(registered.claim(over: bench.nonce(), count: 1))
      }
    }
    #expect(Denial.tooManyRegistrations.code == .overloaded)
    #expect(try await bench.registrar.register(claim).isRepetition == false)
  }
}
