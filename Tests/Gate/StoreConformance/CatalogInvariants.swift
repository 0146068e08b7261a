internal import AppAttest
internal import AttestGate
internal import ByteCoding
internal import Testing

extension StoreInvariant {
  static let catalog = [
    StoreInvariant("Pages of any size list every key once, in the order of the ids") { store async throws in
      let ids = try await registeredKeys(23, in: store).map(\.keyID)
      for limit in [1, 7, 23, 100] {
        #expect(try await list(.all, in: store, limit: limit) == sorted(ids), "limit \(limit)")
      }
    },
    StoreInvariant("Keys are listed in the order of their hashes too, and descending, on pages of any size") {
      store async throws in
      let keys = try await registeredKeys(12, in: store) + (try await registeredAndroidKeys(11, in: store))
      func listed(_ order: KeyOrder, _ selection: KeySelection = .all, limit: Int) async throws -> [String] {
        var (hashes, cursor): ([String], KeyID?) = ([], nil)
        repeat {
          let page = try await store.keys(selection, in: order, after: cursor, limit: limit)
          hashes += page.records.map { KeyHash(of: $0.key.keyID).text }
          cursor = page.next
        } while cursor != nil
        return hashes
      }
      func hashes(_ keys: [DeviceKey]) -> [String] {
        keys.map { KeyHash(of: $0.keyID).text }.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
      }
      for limit in [1, 7, 23, 100] {
        #expect(try await listed(.hash, limit: limit) == hashes(keys), "limit \(limit)")
        #expect(try await listed(.hashDescending, limit: limit) == hashes(keys).reversed(), "limit \(limit)")
      }
      #expect(try await listed(.hash, KeySelection(platform: .android), limit: 3) == hashes(Array(keys[12...])))
      #expect(try await listed(.id, limit: 5).sorted() == hashes(keys).sorted())
    },
    StoreInvariant("An empty store has one page, without keys and without a next page") { store async throws in
      #expect(try await store.keys(.all, after: nil, limit: 10) == KeyPage([], next: nil))
    },
    StoreInvariant("The number of keys is counted") { store async throws in
      #expect(try await store.count() == 0)
      let keys = try await registeredKeys(3, in: store)
      #expect(try await store.count() == 3)
      #expect(try await store.remove([keys[1].keyID], unusedSince: nil) == 1)
      #expect(try await store.count() == 2)
    },
    StoreInvariant("A selection filters by app, environment, revocation, or all together") { store async throws in
      let (one, two) = ("AAABBBCCC1.com.example.one", "AAABBBCCC1.com.example.two")
      let keys = [Fixture.key(of: one), Fixture.key(of: one, in: .development), Fixture.key(of: two)]
      for key in keys { _ = try await store.register(Fixture.registration(of: key)) }
      #expect(try await store.revoke(keys[0].keyID, at: Fixture.now))
      func picked(_ selection: KeySelection) async throws -> [KeyID] { try await list(selection, in: store, limit: 2) }
      #expect(try await picked(KeySelection(app: one)) == sorted([keys[0].keyID, keys[1].keyID]))
      #expect(try await picked(KeySelection(environment: .production)) == sorted([keys[0].keyID, keys[2].keyID]))
      #expect(try await picked(KeySelection(isRevoked: true)) == [keys[0].keyID])
      #expect(try await picked(KeySelection(isRevoked: false)) == sorted([keys[1].keyID, keys[2].keyID]))
      let selection = KeySelection(app: one, environment: .production, isRevoked: false)
      #expect(try await picked(selection) == [])
    },
    StoreInvariant("A key is unused since an instant if its registration and its last use are earlier") {
      store async throws in
      let used = try await registeredKey(in: store)
      let idle = try await registeredKey(in: store)
      #expect(
        try await store.admit(Fixture.use(of: used, 1, at: Fixture.now.advanced(by: .seconds(60)))) == .admitted)
      func unused(_ seconds: Int) -> KeySelection {
        KeySelection(unusedSince: Fixture.now.advanced(by: .seconds(seconds)))
      }
      #expect(try await list(unused(0), in: store, limit: 9) == [])
      #expect(try await list(unused(1), in: store, limit: 9) == [idle.keyID])
      #expect(try await list(unused(61), in: store, limit: 9) == sorted([used.keyID, idle.keyID]))
    },
    StoreInvariant("A spent nonce gives a known lower bound of the time, and a gate's clock does not advance it") {
      store async throws in
      _ = try await registeredKey(in: store)
      let known = try #require(try await store.latestKnownTime())
      // The bound comes from a server's clock or from the nonce.
      #expect(known <= max(Fixture.now, .now()).advanced(by: .seconds(60)))
      #expect(known >= min(Fixture.now, .now()).advanced(by: .seconds(-60)))
      try await store.forgetNonces(issuedBy: Fixture.now.advanced(by: .seconds(86_400 * 365)))
      let later = try #require(try await store.latestKnownTime())
      #expect(later >= known && later <= known.advanced(by: .seconds(60)))
    },
    StoreInvariant("A key is found by its hash and by a prefix of it") { store async throws in
      let key = try await registeredKeys(5, in: store)[2]
      let hash = KeyHash(of: key.keyID)
      #expect(try await store.keys(hashPrefix: hash.text, limit: 9).records.map(\.key) == [key])
      #expect(try await store.keys(hashPrefix: hash.short, limit: 9).records.map(\.key) == [key])
      #expect(try await store.keys(hashPrefix: "", limit: 9).records.count == 5)
      #expect(try await store.keys(hashPrefix: "", limit: 2).records.count == 2)
      #expect(try await store.keys(hashPrefix: hash.text + "A", limit: 9).records == [])
    },
    StoreInvariant("A removed key is like an unregistered one; other keys stay") { store async throws in
      let keys = try await registeredKeys(3, in: store)
      let unknown = Fixture.key().keyID
      #expect(try await store.remove([keys[0].keyID, unknown, keys[2].keyID], unusedSince: nil) == 2)
      #expect(try await store.record(of: keys[0].keyID) == nil)
      #expect(try await store.receipt(of: keys[0].keyID) == nil)
      #expect(try await store.admit(Fixture.use(of: keys[0], 1)) == .unknownKey)
      #expect(try await store.admit(Fixture.use(of: keys[1], 1)) == .admitted)
      #expect(try await store.register(Fixture.registration(of: keys[0])) == .inserted)
    },
    StoreInvariant("A listed key that was used since then is not removed") { store async throws in
      let (used, idle) = (try await registeredKey(in: store), try await registeredKey(in: store))
      let instant = Fixture.now.advanced(by: .seconds(10))
      #expect(try await store.admit(Fixture.use(of: used, 1, at: instant)) == .admitted)
      #expect(try await store.remove([used.keyID, idle.keyID], unusedSince: instant) == 1)
      #expect(try await store.record(of: used.keyID) != nil)
    },
    StoreInvariant("A valid store has no findings") { store async throws in
      _ = try await registeredKeys(3, in: store)
      _ = try await registeredKey(in: store, Fixture.androidKey())
      #expect(try await store.findings(isThorough: true).filter { $0.area == .data } == [])
    },
  ]

  static let copies = [
    StoreInvariant("A copied key keeps its counters, window, dates and receipt") { store async throws in
      let key = try await registeredKey(in: store)
      #expect(try await store.admit(Fixture.use(of: key, 10, window: 8)) == .admitted)
      #expect(try await store.admit(Fixture.use(of: key, 8, window: 8)) == .admitted)
      #expect(try await store.revoke(key.keyID, at: Fixture.now))
      let entries = try await store.entries(after: nil, limit: 10)
      #expect(entries.count == 1)
      #expect(try await store.remove([key.keyID], unusedSince: nil) == 1)
      #expect(try await store.merge(entries) == 1)
      #expect(try await store.entries(after: nil, limit: 10) == entries)
      #expect(try await store.admit(Fixture.use(of: key, 11)) == .revoked)
      #expect(try await store.restore(key.keyID))
      #expect(try await store.admit(Fixture.use(of: key, 8, window: 8)) == .counterReplayed(stored: SignCount(10)))
      #expect(try await store.admit(Fixture.use(of: key, 9, window: 8)) == .admitted)
    },
    StoreInvariant("Entries are returned in pages, in the order of the ids") { store async throws in
      let ids = try await registeredKeys(5, in: store).map(\.keyID)
      let first = try await store.entries(after: nil, limit: 3).map(\.record.key.keyID)
      let second = try await store.entries(after: first.last, limit: 3).map(\.record.key.keyID)
      #expect(first + second == sorted(ids))
    },
    StoreInvariant("A repeated merge changes nothing") { store async throws in
      _ = try await registeredKeys(4, in: store)
      let entries = try await store.entries(after: nil, limit: 10)
      #expect(try await store.merge(entries) == 0)
      #expect(try await store.entries(after: nil, limit: 10) == entries)
    },
    StoreInvariant("An old copy reverts neither a counter nor a revocation") { store async throws in
      let key = try await registeredKey(in: store)
      #expect(try await store.admit(Fixture.use(of: key, 3)) == .admitted)
      let old = try await store.entries(after: nil, limit: 10)
      #expect(try await store.admit(Fixture.use(of: key, 7)) == .admitted)
      #expect(try await store.revoke(key.keyID, at: Fixture.now))
      #expect(try await store.merge(old) == 0)
      #expect(try await store.admit(Fixture.use(of: key, 8)) == .revoked)
      #expect(try await store.restore(key.keyID))
      #expect(try await store.admit(Fixture.use(of: key, 7, window: 63)) == .counterReplayed(stored: SignCount(7)))
    },
    StoreInvariant("A newer copy sets its counter, and no earlier counter is valid") { store async throws in
      let key = try await registeredKey(in: store)
      #expect(try await store.admit(Fixture.use(of: key, 9, window: 8)) == .admitted)
      let newer = try await store.entries(after: nil, limit: 10)
      #expect(try await store.remove([key.keyID], unusedSince: nil) == 1)
      _ = try await store.register(Fixture.registration(of: key))
      #expect(try await store.admit(Fixture.use(of: key, 4, window: 8)) == .admitted)
      #expect(try await store.merge(newer) == 0)
      for counter: UInt32 in 1...9 {
        let admittance = try await store.admit(Fixture.use(of: key, counter, window: 8))
        #expect(admittance == .counterReplayed(stored: SignCount(9)), "counter \(counter)")
      }
    },
  ]

  // MARK: Tools

  static func registeredKeys(_ count: Int, in store: Store) async throws -> [DeviceKey] {
    var keys: [DeviceKey] = []
    for _ in 0..<count { keys.append(try await registeredKey(in: store)) }
    return keys
  }

  /// Returns the ids on all pages.
  static func list(_ selection: KeySelection, in store: Store, limit: Int) async throws -> [KeyID] {
    var ids: [KeyID] = []
    var cursor: KeyID?
    repeat {
      let page = try await store.keys(selection, after: cursor, limit: limit)
      ids += page.records.map(\.key.keyID)
      cursor = page.next
    } while cursor != nil
    return ids
  }
}
