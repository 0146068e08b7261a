import ByteCoding
import Dispatch
import Foundation
import Locking
import MFADomain
import MFAFixtures
import MFAStore
import PostgresServers
import TestSupport
import Testing

/// Sign-ins of two backends at once, which share the lock of writers.
@Suite("Two backends on PostgreSQL", .timeLimit(.minutes(3)))
struct ConcurrentBackendTests {
  @Test("A-092 of two answers to one challenge, at two backends at once, one begins a session")
  func challenge() async throws {
    try await TwoBackends.with(.postgres) { first, second in
      let phone = TestPhone()
      try await first.enrol(phone)
      for _ in 1...15 {
        let proof = try first.proof(phone, of: await first.challenge(phone))
        let statuses = try await withThrowingTaskGroup { group in
          for backend in [first, second] {
            group.addTask { try await backend.post("/auth/verify-signature", proof, as: phone.app).status }
          }
          return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(statuses.sorted() == [200, 401])
      }
    }
  }

  @Test("sign-ins of one device at two backends leave as many sessions as one backend would, and one history")
  func sessions() async throws {
    try await TwoBackends.with(.postgres) { first, second in
      let phones = (1...3).map { TestPhone(username: "user-\($0)") }
      for phone in phones { try await first.enrol(phone) }
      try await withThrowingTaskGroup(of: Void.self) { group in
        for phone in phones {
          for backend in [first, second] {
            for _ in 1...LoginSession.mostOfDevice {
              group.addTask {
                let accepted = try await backend.signIn(phone)
                #expect(accepted.status == 200)
                // A refusal between, which is counted and is an entry.
                let wrong: JSONValue = [
                  "username": .string(phone.username), "deviceId": .string(phone.deviceID),
                  "challengeId": .string(UUID().uuidString),
                  "signature": .string(String(repeating: "A", count: 86) + "=="),
                ]
                let refused = try await backend.post("/auth/verify-signature", wrong, as: phone.app)
                #expect(refused.status == 401)
              }
            }
          }
        }
        try await group.waitForAll()
      }
      let (store, now) = (first.context.store, first.clock.now)
      for phone in phones {
        let live = try await store.read { records in
          let user = try #require(try records.user(named: phone.username))
          return try records.sessions(of: user.id).count { $0.isLive(at: now) }
        }
        #expect(live == LoginSession.mostOfDevice)
      }
      _ = try await first.trail.verify()
    }
  }

  @Test("writes that lock each other's rows in opposite order are both done, without a deadlock of the server")
  func opposite() async throws {
    // The server looks for a deadlock only after an hour: the suite's limit of time would end this test before.
    let url = try await PostgresServer.shared().newURL() + "%20-cdeadlock_timeout%3D1h"
    let stores = [try PostgresMFAStore(url: url), try PostgresMFAStore(url: url)]
    let now = Timestamp(seconds: 1_767_225_600)
    let challenges = try (0..<2).map { _ in
      DeviceChallenge(
        id: UUID(), username: "ada", deviceID: try DeviceID("d"), nonce: Array(repeating: 7, count: 32),
        binding: .attestedKey("k"), createdAt: now, expiresAt: now.advanced(by: DeviceChallenge.lifetime))
    }
    try await stores[0].write { records in for challenge in challenges { try records.insert(challenge) } }
    let meeting = [DispatchSemaphore(value: 0), DispatchSemaphore(value: 0)]
    try await withThrowingTaskGroup(of: Void.self) { group in
      for side in 0..<2 {
        group.addTask {
          let runs = LockedValue(0)
          try await stores[side].write(excluding: .rows) { records in
            try records.countFailure(ofChallenge: challenges[side].id)
            let run = runs.withLock { runs in
              runs += 1
              return runs
            }
            if run == 1 {
              meeting[1 - side].signal()
              meeting[side].wait()
            }
            try records.countFailure(ofChallenge: challenges[1 - side].id)
          }
        }
      }
      try await group.waitForAll()
    }
    for challenge in challenges {
      #expect(try await stores[0].read { try $0.challenge(challenge.id)?.failures } == 2)
    }
  }

  @Test("a write that finds that it must exclude all others runs again alone, and changes nothing twice")
  func exclusion() async throws {
    let url = try await PostgresServer.shared().newURL()
    let store = try PostgresMFAStore(url: url)
    let end = Timestamp(milliseconds: 1)
    let (runs, identity) = (LockedValue(0), UnspentIdentity(IdentityNumber(id: "request", end: end)))
    let isFirst = try await UnspentIdentity.$current.withValue(identity) {
      try await store.write(excluding: .rows) { records in
        runs.withLock { $0 += 1 }
        let isFirst = try records.spend(identity: "row", until: end)
        try records.excludeWriters()
        return isFirst
      }
    }
    #expect(isFirst)
    // On a busy machine the server may end a transaction that rests for too long, which then runs again.
    #expect(runs.withLock { $0 } >= 2)
    try await identity.settle(in: store)
  }
}
