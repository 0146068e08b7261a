internal import AppAttest
internal import AttestGate
internal import ByteCoding
internal import Cryptography
internal import Testing

extension StoreInvariant {
  private static let app = "AAABBBCCC1.com.example.app"
  private static let otherApp = "AAABBBCCC1.com.example.other"

  /// Registers a key of `app` some seconds after `Fixture.now`, with a receipt that no other key has.
  private static func key(of app: String = app, after seconds: Int64 = 0, in store: Store) async throws -> DeviceKey {
    let registration = Fixture.registration(of: Fixture.key(of: app), at: later(seconds))
    #expect(try await store.register(registration) == .inserted)
    return registration.key
  }

  private static func later(_ seconds: Int64) -> Timestamp { Fixture.now.advanced(by: .seconds(seconds)) }

  /// Returns what is due for apps, some seconds after `Fixture.now`.
  private static func due(
    _ apps: [String] = [app], after seconds: Int64 = 0, limit: Int = 10, in store: Store
  ) async throws -> [DueReceipt] {
    try await store.dueReceipts(of: apps.compactMap { AppID($0) }, at: later(seconds), limit: limit)
  }

  private static func due(_ key: DeviceKey, in store: Store) async throws -> DueReceipt {
    try #require(try await due(after: 1_000_000, limit: 1000, in: store).first { $0.key.keyID == key.keyID })
  }

  /// Stores `metric` for `key`, whose next exchange is some seconds after `Fixture.now`.
  private static func measure(
    _ key: DeviceKey, _ metric: Int, next seconds: Int64? = 100, in store: Store
  ) async throws {
    let settlement = ReceiptSettlement(
      risk: KeyRisk(metric: metric, at: Fixture.now), next: seconds.map { later($0) })
    #expect(try await store.settle(due(key, in: store), as: settlement))
  }

  static let risks = [
    StoreInvariant("A receipt is due at once: first those never exchanged, the newest key first, then the longest due")
    {
      store async throws in
      let keys = [
        try await key(after: 1, in: store), try await key(after: 3, in: store), try await key(after: 2, in: store),
        try await key(of: otherApp, after: 4, in: store), try await key(after: 0, in: store),
      ]
      _ = try await registeredKey(in: store, Fixture.androidKey())
      try await measure(keys[0], 1, next: 60, in: store)
      try await measure(keys[2], 1, next: 50, in: store)
      #expect(try await due(in: store).map(\.key.keyID) == [1, 4].map { keys[$0].keyID })
      #expect(try await due(after: 49, in: store).count == 2)
      #expect(try await due(after: 50, in: store).map(\.key.keyID) == [1, 4, 2].map { keys[$0].keyID })
      #expect(try await due(after: 60, in: store).map(\.key.keyID) == [1, 4, 2, 0].map { keys[$0].keyID })
      let both = try await due([app, otherApp], after: 60, limit: 4, in: store)
      #expect(both.map(\.key.keyID) == [3, 1, 4, 2].map { keys[$0].keyID })
      #expect(try await due([app, otherApp], after: 60, limit: 1, in: store).map(\.key.keyID) == [keys[3].keyID])
      #expect(try await due([], after: 60, in: store) == [])
    },
    StoreInvariant("A due receipt has its key, its bytes and the failures so far") { store async throws in
      let registration = Fixture.registration()
      _ = try await store.register(registration)
      let first = try #require(try await due(in: store).first)
      #expect(DeviceKey(first.key) == registration.key)
      #expect(first.receipt == registration.receipt)
      #expect(first.failures == 0)
      #expect(try await store.settle(first, as: ReceiptSettlement(next: later(5), failures: 3)))
      #expect(try await due(after: 5, in: store).map(\.failures) == [3])
      #expect(try await store.record(of: registration.key.keyID)?.risk == nil)
    },
    StoreInvariant("A settlement stores receipt and metric, and none is stored for another receipt or a removed key") {
      store async throws in
      let key = try await key(in: store)
      let old = try await due(key, in: store)
      let risk = KeyRisk(metric: 7, at: later(1))
      let newReceipt = SecureRandom.bytes(5000)
      #expect(try await store.settle(old, as: ReceiptSettlement(receipt: newReceipt, risk: risk, next: later(9))))
      #expect(try await store.record(of: key.keyID)?.risk == StoredRisk(risk))
      #expect(try await store.receipt(of: key.keyID) == newReceipt)
      #expect(
        try await store.keys(hashPrefix: KeyHash(of: key.keyID).text, limit: 1).records.map(\.risk) == [
          StoredRisk(risk)
        ])
      #expect(try await store.keys(.all, after: nil, limit: 1).records.map(\.risk) == [StoredRisk(risk)])

      let late = ReceiptSettlement(risk: KeyRisk(metric: 99, at: later(2)), next: nil, failures: 9, revokedAt: later(2))
      #expect(try await !store.settle(old, as: late))
      let new = try await due(key, in: store)
      #expect(new.receipt == newReceipt && new.failures == 0)
      #expect(try await store.remove([key.keyID], unusedSince: nil) == 1)
      #expect(try await !store.settle(new, as: late))
      #expect(try await due(after: 1_000_000, in: store) == [])
    },
    StoreInvariant("Of 20 concurrent settlements with other receipts, one is stored") { store async throws in
      let due = try await due(key(in: store), in: store)
      let answers = try await tally(20) { number in
        try await store.settle(
          due,
          as: ReceiptSettlement(
            receipt: [UInt8(number)], risk: KeyRisk(metric: number, at: Fixture.now), next: Fixture.now))
      }
      #expect(answers == [true: 1, false: 19])
      let metric = try #require(try await store.record(of: due.key.keyID)?.risk?.newest.metric)
      #expect(try await store.receipt(of: due.key.keyID) == [UInt8(metric)])
    },
    StoreInvariant("Without a next exchange the metric is kept and outdated, and nothing is due") {
      store async throws in
      let key = try await key(in: store)
      try await measure(key, 4, in: store)
      #expect(try await store.settle(due(key, in: store), as: ReceiptSettlement(next: nil)))
      let risk = try #require(try await store.record(of: key.keyID)?.risk)
      #expect(risk == StoredRisk(KeyRisk(metric: 4, at: Fixture.now), isOutdated: true))
      #expect(risk.current == nil)
      #expect(try await due(after: 1_000_000, in: store) == [])
    },
    StoreInvariant("A revoked key is not due, and a restored one is again") { store async throws in
      let keys = [try await key(after: 1, in: store), try await key(in: store)]
      try await measure(keys[1], 1, in: store)
      for key in keys { #expect(try await store.revoke(key.keyID, at: Fixture.now)) }
      #expect(try await due(after: 100, in: store) == [])
      for key in keys { #expect(try await store.restore(key.keyID)) }
      #expect(try await due(after: 100, in: store).map(\.key.keyID) == keys.map(\.keyID))
    },
    StoreInvariant(
      "Every gate hears of a metric that policies act on, of an equal one once a week, and of no other exchange"
    ) {
      store async throws in
      let key = try await key(in: store)
      var position = try await store.changes(after: nil).position
      func news(_ settlement: ReceiptSettlement) async throws -> [StoreChange] {
        #expect(try await store.settle(due(key, in: store), as: settlement))
        let news = try await store.changes(after: position)
        position = news.position
        return news.changes
      }
      func risk(_ metric: Int, _ seconds: Int64) -> KeyRisk { KeyRisk(metric: metric, at: later(seconds)) }
      #expect(try await news(ReceiptSettlement(next: later(1), failures: 1)) == [])
      #expect(try await news(ReceiptSettlement(receipt: [1], risk: risk(2, 1), next: later(2))) == [.key(key.keyID)])
      #expect(try await news(ReceiptSettlement(receipt: [2], risk: risk(2, 2), next: later(3))) == [])
      #expect(try await store.record(of: key.keyID)?.risk?.newest == risk(2, 2))
      #expect(try await news(ReceiptSettlement(receipt: [3], risk: risk(3, 3), next: later(4))) == [.key(key.keyID)])
      let nextWeek = KeyRisk.millisecondsOfWeek / 1000
      #expect(
        try await news(ReceiptSettlement(receipt: [4], risk: risk(3, nextWeek), next: later(5))) == [.key(key.keyID)])
      #expect(try await news(ReceiptSettlement(receipt: [5], risk: risk(3, nextWeek + 1), next: later(6))) == [])
      #expect(try await news(ReceiptSettlement(next: nil)) == [.key(key.keyID)])
    },
    StoreInvariant("A settlement can revoke the key, once, and gates hear of it") { store async throws in
      let key = try await key(in: store)
      try await measure(key, 5, in: store)
      let start = try await store.changes(after: nil).position
      let due = try await due(key, in: store)
      for second in Int64(1)...2 {
        #expect(
          try await store.settle(due, as: ReceiptSettlement(next: later(200), revokedAt: later(second))))
      }
      #expect(try await store.record(of: key.keyID)?.revokedAt == later(1))
      #expect(try await store.admit(Fixture.use(of: key, 1)) == .revoked)
      #expect(try await store.changes(after: start).changes == [.key(key.keyID)])
      #expect(try await StoreInvariant.due(after: 1000, in: store) == [])
    },
    StoreInvariant("A list by metric has the keys with a current one in the range, or those without") {
      store async throws in
      var keys: [DeviceKey] = []
      for metric in 0..<5 {
        keys.append(try await key(in: store))
        try await measure(keys[metric], metric, in: store)
      }
      keys.append(try await key(in: store))
      keys.append(try await key(in: store))
      try await measure(keys[6], 3, next: nil, in: store)
      func list(_ risk: RiskSelection) async throws -> Set<KeyID> {
        Set(try await store.keys(KeySelection(risk: risk), after: nil, limit: 10).records.map(\.key.keyID))
      }
      #expect(try await list(.metric(3...Int.max)) == Set(keys[3...4].map(\.keyID)))
      #expect(try await list(.metric(1...3)) == Set(keys[1...3].map(\.keyID)))
      #expect(try await list(.metric(0...0)) == [keys[0].keyID])
      #expect(try await list(.unknown) == Set(keys[5...6].map(\.keyID)))
    },
    StoreInvariant("A tally counts every key once that is not revoked, part by part") { store async throws in
      for metric in [1, 1, 3] { try await measure(key(in: store), metric, in: store) }
      try await measure(key(in: store), 3, next: nil, in: store)
      _ = try await key(of: otherApp, in: store)
      let revoked = try await key(in: store)
      #expect(try await store.revoke(revoked.keyID, at: Fixture.now))
      for limit in [1, 2, 100] {
        var tally = try await store.riskTally(after: nil, limit: limit)
        while let cursor = tally.next { tally.add(try await store.riskTally(after: cursor, limit: limit)) }
        #expect(
          tally.counts == [
            .init(app: app, metric: 1): 2, .init(app: app, metric: 3): 1, .init(app: app, metric: nil): 1,
            .init(app: otherApp, metric: nil): 1,
          ])
      }
    },
    StoreInvariant("A copy keeps metric and newest receipt, and a merge keeps the newer ones") { store async throws in
      let key = try await key(in: store)
      let first = try await store.entries(after: nil, limit: 10)
      #expect(first.map(\.record.risk) == [nil])
      let risk = KeyRisk(metric: 2, at: later(10))
      #expect(
        try await store.settle(due(key, in: store), as: ReceiptSettlement(receipt: [2], risk: risk, next: later(20))))
      let second = try await store.entries(after: nil, limit: 10)
      #expect(second.map(\.record.risk) == [StoredRisk(risk)])
      #expect(second.map(\.receipt) == [[2]])

      #expect(try await store.merge(first) == 0)
      #expect(try await store.entries(after: nil, limit: 10) == second)
      #expect(try await store.remove([key.keyID], unusedSince: nil) == 1)
      #expect(try await store.merge(first) == 1)
      #expect(try await store.entries(after: nil, limit: 10) == first)
      let start = try await store.changes(after: nil).position
      #expect(try await store.merge(second) == 0)
      #expect(try await store.entries(after: nil, limit: 10) == second)
      #expect(try await store.changes(after: start).changes == [.key(key.keyID)])
      #expect(try await due(after: 9, in: store) == [])
      #expect(try await due(after: 10, in: store).map(\.receipt) == [[2]])

      #expect(try await store.remove([key.keyID], unusedSince: nil) == 1)
      let outdated = second.map { entry in
        KeyEntry(
          record: KeyRecord(
            key: entry.record.key, request: entry.record.request, registeredAt: entry.record.registeredAt,
            counter: entry.record.counter, lastUsedAt: nil, revokedAt: nil, risk: StoredRisk(risk, isOutdated: true)),
          usedCounters: entry.usedCounters, receipt: entry.receipt)
      }
      #expect(try await store.merge(outdated) == 1)
      #expect(try await store.entries(after: nil, limit: 10) == outdated)
      #expect(try await due(after: 1_000_000, in: store) == [])
    },
    StoreInvariant("A round of exchanges can begin again after it has ended") { store async throws in
      for _ in 0..<3 {
        #expect(try await store.beginExchange())
        #expect(try await store.holdsExchange())
        try await store.endExchange()
      }
    },
  ]
}
