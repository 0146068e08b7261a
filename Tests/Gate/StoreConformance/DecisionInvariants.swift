import AppAttest
import AttestGate
import ByteCoding
import Testing

extension StoreInvariant {
  static let decisions = [
    StoreInvariant("Decisions about a key are listed once on pages of any size, the last stored first") {
      store async throws in
      let (key, other) = (try await registeredKey(in: store), try await registeredKey(in: store))
      let decisions = (0..<23).map { decision(about: key, $0, $0 % 2 == 0 ? .admitted : .refused) }
      for part in [decisions[..<9], decisions[9...]] {
        try await store.store(Array(part) + [decision(about: other, 99, .admitted)], atMost: 100)
      }
      for limit in [1, 7, 22, 23, 24] {
        #expect(try await listed(key, in: store, limit: limit) == decisions.reversed(), "limit \(limit)")
      }
      #expect(try await listed(other, in: store).count == 2)
      #expect(try await store.findings(isThorough: true).filter { $0.area == .data } == [])
    },
    StoreInvariant("No decision about an unknown key is stored, and a removed key keeps none") { store async throws in
      let keys = try await registeredKeys(2, in: store)
      let unknown = Fixture.key()
      let every = [keys[0], unknown, keys[1]].flatMap { key in
        KeyDecision.Kind.allCases.map { decision(about: key, 1, $0) }
      }
      try await store.store(every, atMost: 10)
      #expect(try await listed(unknown, in: store) == [])
      #expect(try await listed(keys[0], in: store).count == 3)
      #expect(try await store.remove([keys[0].keyID], unusedSince: nil) == 1)
      #expect(try await listed(keys[0], in: store) == [])
      #expect(try await listed(keys[1], in: store).count == 3)
      try await store.store([decision(about: keys[0], 2, .admitted)], atMost: 10)
      _ = try await store.register(Fixture.registration(of: keys[0]))
      #expect(try await listed(keys[0], in: store) == [])
    },
    StoreInvariant("Of each key and kind the newest decisions are kept, and no kind replaces another one") {
      store async throws in
      let (key, other) = (try await registeredKey(in: store), try await registeredKey(in: store))
      try await store.store(
        [decision(about: other, 0, .refused), decision(about: key, 0, .admitted), decision(about: key, 1, .admitted)],
        atMost: 5)
      for number in 2..<40 { try await store.store([decision(about: key, number, .refused)], atMost: 5) }
      let kept = try await listed(key, in: store)
      #expect(kept.map(\.requestID) == (35..<40).reversed().map { "r\($0)" } + ["r1", "r0"])
      #expect(try await listed(other, in: store).count == 1)
    },
    StoreInvariant("Unverified refusals with the same code and step become one, which counts them") {
      store async throws in
      let (key, other) = (try await registeredKey(in: store), try await registeredKey(in: store))
      for number in 0..<30 {
        try await store.store(
          [decision(about: key, number, .unverified, code: number % 3 == 0 ? "a" : "b", count: 2)], atMost: 5)
      }
      try await store.store([decision(about: other, 0, .unverified)], atMost: 5)
      let kept = try await listed(key, in: store)
      #expect(kept.map(\.code) == ["b", "a"] && kept.map(\.count) == [40, 20])
      #expect(kept.map(\.requestID) == ["r29", "r27"])
      #expect(kept.map(\.since) == [1, 0].map { Fixture.now.advanced(by: .seconds($0)) })
      #expect(try await listed(other, in: store).map(\.count) == [1])
    },
    StoreInvariant("Old decisions are forgotten, and the oldest above the number, also thousands") {
      store async throws in
      let keys = try await registeredKeys(2, in: store)
      for part in 0..<13 {
        let numbers = (part * 100)..<(part * 100 + 100)
        try await store.store(numbers.map { decision(about: keys[$0 % 2], $0, .admitted) }, atMost: 1000)
      }
      func numbers(longest: Int, most: Int) async throws -> [Int] {
        let now = Fixture.now.advanced(by: .seconds(1300))
        try await store.forgetDecisions(DecisionRetention(longest: .seconds(longest), most: most), at: now)
        var all: [Int] = []
        for key in keys { all += try await listed(key, in: store).compactMap { Int($0.requestID.dropFirst()) } }
        return all.sorted()
      }
      #expect(try await numbers(longest: 2000, most: 1300) == Array(0..<1300))
      #expect(try await numbers(longest: 700, most: 1300) == Array(600..<1300))
      #expect(try await numbers(longest: 700, most: 30) == Array(1270..<1300))
      try await store.forgetDecisions(.nothing, at: Fixture.now.advanced(by: .seconds(1300)))
      #expect(try await numbers(longest: 2000, most: 1300) == [])
    },
    StoreInvariant("Old decisions are forgotten also after hundreds of a clock that was ahead") { store async throws in
      let (key, other) = (try await registeredKey(in: store), try await registeredKey(in: store))
      for part in 0..<6 {
        let numbers = (5000 + part * 100)..<(5100 + part * 100)
        try await store.store(numbers.map { decision(about: key, $0, .admitted) }, atMost: 1000)
      }
      try await store.store((0..<3).map { decision(about: other, $0, .admitted) }, atMost: 1000)
      let now = Fixture.now.advanced(by: .seconds(10))
      try await store.forgetDecisions(DecisionRetention(longest: .seconds(9), most: 1000), at: now)
      #expect(try await listed(other, in: store).map(\.requestID) == ["r2", "r1"])
      #expect(try await listed(key, in: store).count == 600)
    },
  ]

  // MARK: Tools

  /// A decision that is `number` seconds after the others.
  private static func decision(
    about key: DeviceKey, _ number: Int, _ kind: KeyDecision.Kind, code: String = "counter_replayed", count: Int64 = 1
  ) -> KeyDecision {
    let (hash, at) = (KeyHash(of: key.keyID).text, Fixture.now.advanced(by: .seconds(number)))
    guard kind != .admitted else {
      return KeyDecision(keyHash: hash, kind: kind, at: at, address: "2001:db8::1", requestID: "r\(number)")
    }
    return KeyDecision(
      keyHash: hash, kind: kind, at: at, status: number % 2 == 0 ? 401 : nil, code: code, step: "step",
      detail: number % 2 == 0 ? "7 after 7\0" : nil, address: "192.0.2.7", requestID: "r\(number)", count: count)
  }

  private static func listed(_ key: DeviceKey, in store: Store, limit: Int = 500) async throws -> [KeyDecision] {
    var decisions: [KeyDecision] = []
    var position: Int64?
    repeat {
      let page = try await store.decisions(of: key.keyID, before: position, limit: limit)
      decisions += page.decisions
      position = page.next
    } while position != nil
    return decisions
  }
}
