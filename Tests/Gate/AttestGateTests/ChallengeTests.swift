import AppAttest
import ByteCoding
import Cryptography
import GateFixtures
import Locking
import Testing

@testable import AttestGate

@Suite("Challenges")
struct ChallengeTests {
  private let now = Timestamp(seconds: 1_800_000_000, nanoseconds: 250_000_000)
  private let challenges = Challenges(ring: .random())

  private func issue(at instant: Timestamp? = nil, by issuer: Challenges? = nil) throws -> Nonce {
    let challenge = (issuer ?? challenges).issue(at: instant ?? now)
    return try #require(challenge).nonce
  }

  private func fault(_ nonce: Nonce, at instant: Timestamp, by judge: Challenges? = nil) -> NonceRejection? {
    do throws(NonceRejection) {
      try (judge ?? challenges).check(nonce, at: instant)
      return nil
    } catch {
      return error
    }
  }

  @Test("A nonce is 64 lowercase hex digits: key number, milliseconds, random bytes, and the MAC over them")
  func form() throws {
    let key = try #require(ChallengeKey(number: 7, secret: SecureRandom.bytes(32)))
    let ring = try #require(ChallengeKeyRing(keys: [key]))
    let challenges = Challenges(ring: ring)
    let challenge = try #require(challenges.issue(at: now))
    let bytes = try #require(Hex.decode(challenge.nonce.text))
    #expect(challenge.nonce.text.count == 64 && challenge.nonce.text == challenge.nonce.text.lowercased())
    #expect(bytes[0] == 7)
    #expect(bytes[1..<7].reduce(0) { $0 << 8 | Int64($1) } == now.milliseconds)
    let code = HMACSHA256.authenticate(Array("sallyport nonce v1".utf8) + bytes[..<16], key: key.secret)
    #expect(Array(bytes[16...]) == Array(code[..<16]))
    #expect(challenge.expiresAt == now.advanced(by: .seconds(60)))
    #expect(challenge.nonce.clientDataHash.bytes == SHA256.hash(bytes))
  }

  @Test(
    "T-50 A text that is not 64 lowercase hex digits is not a nonce",
    arguments: [
      "", "00", String(repeating: "0", count: 63), String(repeating: "0", count: 65), String(repeating: "A", count: 64),
      "+5" + String(repeating: "0", count: 62), String(repeating: "0", count: 63) + "g",
      " " + String(repeating: "0", count: 63), String(repeating: "é", count: 32),
    ])
  func malformed(_ text: String) { #expect(Nonce(text: text) == nil) }

  @Test("Nonces are unique, even within one millisecond")
  func unique() throws {
    let nonces = try (0..<1000).map { _ in try issue() }
    #expect(Set(nonces).count == 1000)
  }

  @Test("T-59 A flood of challenges invalidates none that was issued before")
  func flood() throws {
    let first = try issue()
    for _ in 0..<20_000 { _ = try issue() }
    #expect(fault(first, at: now.advanced(by: .seconds(60))) == nil)
  }

  @Test(
    "A nonce is valid from 5.000 s before its issue, for clock skew, until 60.000 s after it",
    arguments: [
      (Duration.zero, true), (.milliseconds(59_999), true), (.seconds(60), true),
      (.seconds(60) + .nanoseconds(1), false), (.milliseconds(60_001), false), (.seconds(3600), false),
      (.seconds(-5), true), (.seconds(-5) - .nanoseconds(1), false), (.seconds(-3600), false),
    ])
  func life(_ age: Duration, isGood: Bool) throws {
    let nonce = try issue()
    let found = fault(nonce, at: now.advanced(by: age))
    let expected: NonceRejection? = isGood ? nil : age > .zero ? .expired(age: age) : .fromTheFuture(ahead: .zero - age)
    #expect(found == expected)
  }

  @Test("A configured lifetime is exact to the millisecond", arguments: [1, 30, 300])
  func otherLife(_ seconds: Int) throws {
    let challenges = Challenges(ring: .random(), life: .seconds(seconds))
    let challenge = try #require(challenges.issue(at: now))
    #expect(challenge.expiresAt == now.advanced(by: .seconds(seconds)))
    #expect(fault(challenge.nonce, at: challenge.expiresAt, by: challenges) == nil)
    #expect(fault(challenge.nonce, at: challenge.expiresAt.advanced(by: .milliseconds(1)), by: challenges) != nil)
  }

  @Test("A nonce with one changed bit in any byte is refused", arguments: 0..<32)
  func tampered(_ index: Int) throws {
    let nonce = try issue()
    for bit in 0..<8 {
      var bytes = nonce.bytes
      bytes[index] ^= 1 << bit
      let changed = try #require(Nonce(bytes: bytes))
      let expected: NonceRejection = index == 0 ? .unknownKey(bytes[0]) : .forged
      #expect(fault(changed, at: now) == expected)
    }
  }

  @Test("A nonce of another gate is refused, even under the same key number")
  func otherKey() throws {
    let (first, second) = (SecureRandom.bytes(32), SecureRandom.bytes(32))
    let rings = try [first, second].map { secret in
      let key = try #require(ChallengeKey(number: 1, secret: secret))
      return try #require(ChallengeKeyRing(keys: [key]))
    }
    let nonce = try issue(by: Challenges(ring: rings[0]))
    #expect(fault(nonce, at: now, by: Challenges(ring: rings[0])) == nil)
    #expect(fault(nonce, at: now, by: Challenges(ring: rings[1])) == .forged)
  }

  @Test("After a rotation the new key issues nonces, and nonces of the old key stay valid for the overlap")
  func rotation() throws {
    let old = ChallengeKeyRing.random()
    let new = old.rotated(at: now, overlap: .seconds(5), life: .seconds(60))
    let (before, after) = (Challenges(ring: old), Challenges(ring: new))
    let early = try issue(at: now.advanced(by: .seconds(5)), by: before)
    let late = try issue(at: now.advanced(by: .milliseconds(5001)), by: before)
    let own = try issue(by: after)
    #expect(fault(early, at: now.advanced(by: .seconds(30)), by: after) == nil)
    #expect(fault(late, at: now.advanced(by: .seconds(30)), by: after) == .retiredKey(late.bytes[0]))
    #expect(own.bytes[0] != early.bytes[0])
    #expect(fault(own, at: now, by: before) == .unknownKey(own.bytes[0]))
  }

  /// Answers once `isHeld` is false.
  private final class SlowStorage: ChallengeKeyStorage {
    let ring: LockedValue<ChallengeKeyRing>
    let fault = LockedValue<StoreError?>(nil)
    let calls = LockedValue(0)
    let isHeld = LockedValue(false)

    init(_ ring: ChallengeKeyRing) { self.ring = LockedValue(ring) }

    func challengeKeys(orStoring candidate: ChallengeKeyRing) async throws(StoreError) -> ChallengeKeyRing {
      calls.withLock { $0 += 1 }
      while isHeld.withLock({ $0 }), !Task.isCancelled { await Task.yield() }
      if let fault = fault.withLock({ $0 }) { throw fault }
      return ring.withLock { $0 }
    }

    func replaceChallengeKeys(with ring: ChallengeKeyRing) async throws(StoreError) {}

    func replaceChallengeKeys(
      _ expected: ChallengeKeyRing, with ring: ChallengeKeyRing
    ) async throws(StoreError) -> Bool { false }
  }

  @Test(
    "Clients whose nonce names an unknown key wait for one shared reload of the keys",
    arguments: [true, false])
  func sharedRefresh(isReachable: Bool) async throws {
    let old = ChallengeKeyRing.random()
    let storage = SlowStorage(old)
    let challenges = Challenges(storage: storage)
    try await challenges.prepare()
    let new = old.rotated(at: now, overlap: .zero, life: .seconds(60))
    let nonces = try (0..<20).map { _ in try issue(by: Challenges(ring: new)) }
    storage.ring.withLock { $0 = new }
    storage.fault.withLock { $0 = isReachable ? nil : .unreachable(reason: "gone") }
    storage.isHeld.withLock { $0 = true }
    let outcomes = await withTaskGroup(of: Denial?.self) { group in
      for nonce in nonces {
        group.addTask {
          do throws(Denial) {
            try await challenges.require(nonce, at: now)
            return nil
          } catch {
            return error
          }
        }
      }
      group.addTask {
        try? await Task.sleep(for: .milliseconds(50))
        storage.isHeld.withLock { $0 = false }
        return nil
      }
      return await group.reduce(into: []) { $0.append($1) }.compactMap(\.self)
    }
    if isReachable {
      #expect(outcomes.isEmpty && storage.calls.withLock { $0 } == 2)
      // Forged nonces reload the keys at most once a second.
      let other = try issue(by: Challenges(ring: new.rotated(at: now, overlap: .zero, life: .seconds(60))))
      await #expect(throws: Denial.self) { try await challenges.require(other, at: now) }
      #expect(storage.calls.withLock { $0 } == 2)
    } else {
      #expect(outcomes.count == 20)
      for outcome in outcomes {
        guard case .storeUnavailable = outcome else {
          Issue.record("\(outcome)")
          continue
        }
      }
    }
  }

  /// Delays the answer to the first call: it returns the state at the time of that call, after later calls have
  /// returned.
  private final class OvertakenStorage: ChallengeKeyStorage {
    let ring: LockedValue<ChallengeKeyRing>
    let calls = LockedValue(0)
    let isFirstHeld = LockedValue(true)

    init(_ ring: ChallengeKeyRing) { self.ring = LockedValue(ring) }

    func challengeKeys(orStoring candidate: ChallengeKeyRing) async throws(StoreError) -> ChallengeKeyRing {
      let number = calls.withLock { calls in
        calls += 1
        return calls
      }
      let found = ring.withLock { $0 }
      while number == 1, isFirstHeld.withLock({ $0 }), !Task.isCancelled { await Task.yield() }
      return found
    }

    func replaceChallengeKeys(with ring: ChallengeKeyRing) async throws(StoreError) {}

    func replaceChallengeKeys(
      _ expected: ChallengeKeyRing, with ring: ChallengeKeyRing
    ) async throws(StoreError) -> Bool { false }
  }

  @Test("Keys that were read earlier but arrive later do not replace newer ones", .timeLimit(.minutes(1)))
  func overtaken() async throws {
    let old = ChallengeKeyRing.random()
    let storage = OvertakenStorage(old)
    let challenges = Challenges(storage: storage)
    let slow = Task { try await challenges.refresh() }
    while storage.calls.withLock({ $0 }) == 0, !Task.isCancelled { await Task.yield() }
    // `rotate --now` in another process: every old key is invalid.
    let new = ChallengeKeyRing.random()
    storage.ring.withLock { $0 = new }
    try await challenges.refresh()
    storage.isFirstHeld.withLock { $0 = false }
    try await slow.value
    #expect(fault(try issue(by: Challenges(ring: new)), at: now, by: challenges) == nil)
    #expect(fault(try issue(by: Challenges(ring: old)), at: now, by: challenges) != nil)
  }

  @Test("Maintenance adopts the keys that it finds in the storage")
  func tendAdopts() async throws {
    let storage = SlowStorage(.random())
    let challenges = Challenges(storage: storage)
    try await challenges.prepare()
    let new = ChallengeKeyRing.random()
    storage.ring.withLock { $0 = new }
    #expect(try await challenges.tend(at: now, every: nil) == nil)
    #expect(fault(try issue(by: Challenges(ring: new)), at: now, by: challenges) == nil)
  }

  @Test("A retired key is dropped once its nonces have expired; key numbers stay unique over 1000 rotations")
  func manyRotations() throws {
    var ring = ChallengeKeyRing.random()
    for step in 0..<1000 {
      let instant = now.advanced(by: .seconds(step * 30))
      ring = ring.rotated(at: instant, overlap: .seconds(5), life: .seconds(60))
      #expect(ring.keys.count <= 4)
      #expect(Set(ring.keys.map(\.number)).count == ring.keys.count)
      #expect(ring.keys.first?.retiresAt == nil)
    }
    for _ in 0..<1000 { ring = ring.rotated(at: now, overlap: .seconds(5), life: .seconds(60)) }
    #expect(ring.keys.count <= 255)
    #expect(Set(ring.keys.map(\.number)).count == ring.keys.count)
  }

  @Test("A key file lists keys; the first key issues nonces")
  func keyFile() throws {
    let (first, second) = (SecureRandom.bytes(32), SecureRandom.bytes(32))
    let ring = try ChallengeKeyRing(text: "# keys\n\n200 \(Hex.encode(first))\n3\t\(Hex.encode(second))\r\n")
    #expect(ring.keys.map(\.number) == [200, 3])
    #expect(ring.keys.map(\.secret) == [first, second])
    let nonce = try issue(by: Challenges(ring: ring))
    #expect(nonce.bytes[0] == 200)
  }

  @Test(
    "An invalid key file is refused with the line number",
    arguments: [
      ("", ChallengeKeyRing.FileError.noKeys), ("# nothing\n", .noKeys),
      ("1 \(String(repeating: "0", count: 62))", .malformedLine(1)),
      ("1 \(String(repeating: "0", count: 64)) x", .malformedLine(1)),
      ("#\n256 \(String(repeating: "0", count: 64))", .malformedLine(2)),
      ("1 \(String(repeating: "0", count: 64))\n1 \(String(repeating: "1", count: 64))", .repeatedNumber(1)),
    ])
  func faultyKeyFile(_ text: String, _ fault: ChallengeKeyRing.FileError) {
    #expect(throws: fault) { try ChallengeKeyRing(text: text) }
  }

  @Test("Without keys no nonce is issued; once the storage is reachable, nonces are issued and checked normally")
  func lateStorage() async throws {
    let bench = try GateBench()
    let challenges = Challenges(storage: bench.store)
    #expect(challenges.issue(at: now) == nil)
    try await challenges.prepare()
    let nonce = try issue(by: challenges)
    let other = Challenges(storage: bench.store)
    try await other.prepare()
    #expect(fault(nonce, at: now, by: other) == nil)
  }
}
