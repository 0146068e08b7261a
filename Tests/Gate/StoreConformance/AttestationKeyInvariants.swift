internal import AndroidKeyAttestation
internal import AppAttest
internal import AttestGate
internal import ByteCoding
internal import Cryptography
internal import Testing

extension StoreInvariant {
  /// Registers keys below one attestation key, a second apart from `Fixture.now` on.
  private static func keys(
    _ count: Int, below serial: [UInt8] = SecureRandom.bytes(16), package: String = "com.example.app", in store: Store
  ) async throws -> [DeviceKey] {
    var keys: [DeviceKey] = []
    for number in 0..<count {
      let key = Fixture.androidKey(package: package, serial: serial)
      #expect(try await store.register(Fixture.registration(of: key, at: after(number))) == .inserted)
      keys.append(key)
    }
    return keys
  }

  private static func after(_ seconds: Int) -> Timestamp { Fixture.now.advanced(by: .seconds(seconds)) }

  /// The current metrics of keys, by each way to read them.
  private static func risks(of keys: [DeviceKey], in store: Store) async throws -> [StoredRisk?] {
    var risks: [StoredRisk?] = []
    let pages = try await store.keys(.all, after: nil, limit: 1000).records
    for key in keys {
      let risk = try await store.record(of: key.keyID)?.risk
      #expect(try await store.keys(hashPrefix: KeyHash(of: key.keyID).text, limit: 1).records.first?.risk == risk)
      #expect(pages.first { $0.key.keyID == key.keyID }?.risk == risk)
      risks.append(risk)
    }
    return risks
  }

  /// Returns the keys that gates are notified of because of `body`.
  private static func news(in store: Store, _ body: () async throws -> Void) async throws -> Set<StoreChange> {
    let start = try await store.changes(after: nil).position
    try await body()
    return Set(try await store.changes(after: start).changes)
  }

  static let attestationKeys = [
    StoreInvariant("The metric of an Android key is the number of keys below its attestation key") {
      store async throws in
      let (first, second) = (try await keys(3, in: store), try await keys(1, in: store))
      let other = try await registeredKey(in: store)
      let expected = StoredRisk(KeyRisk(metric: 3, at: after(2)))
      #expect(try await risks(of: first, in: store) == [expected, expected, expected])
      #expect(try await risks(of: second + [other], in: store) == [StoredRisk(KeyRisk(metric: 1, at: after(0))), nil])
    },
    StoreInvariant("A factory's attestation key is in many devices, so that keys below it have no metric") {
      store async throws in
      let serial = SecureRandom.bytes(16)
      var keys: [DeviceKey] = []
      for provisioning in [.factory, .unknown, .factory] as [KeyProvisioning] {
        keys.append(try await registeredKey(in: store, Fixture.androidKey(provisioning: provisioning, serial: serial)))
      }
      #expect(try await risks(of: keys, in: store) == [nil, nil, nil])
      // A certificate of another authority may have the same number.
      let remote = try await registeredKey(in: store, Fixture.androidKey(serial: serial))
      #expect(try await risks(of: [remote], in: store).map { $0?.newest.metric } == [1])
      let nothing = try await store.revokeKeys(attestedLike: keys[0].keyID, above: 0, at: Fixture.now)
      #expect(nothing == .nothing(metric: 0))
    },
    StoreInvariant("Revoked keys count, removed keys do not") { store async throws in
      let keys = try await keys(3, in: store)
      #expect(try await store.revoke(keys[0].keyID, at: Fixture.now))
      #expect(try await risks(of: keys, in: store).map { $0?.newest.metric } == [3, 3, 3])
      #expect(try await store.remove([keys[2].keyID], unusedSince: nil) == 1)
      let left = StoredRisk(KeyRisk(metric: 2, at: after(1)))
      #expect(try await risks(of: Array(keys[0...1]), in: store) == [left, left])
    },
    StoreInvariant("A store counts to the greatest metric and no further") { store async throws in
      let keys = try await keys(AttestationKeyRisk.greatest + 2, in: store)
      let metrics = try await risks(of: [keys[0], keys[50], keys[101]], in: store).map { $0?.newest.metric }
      #expect(metrics == [Int?](repeating: AttestationKeyRisk.greatest, count: 3))
    },
    StoreInvariant("Gates hear of the keys whose metric a registration or a removal changes, and of no others") {
      store async throws in
      let serial = SecureRandom.bytes(16)
      _ = try await keys(2, in: store)
      let none = try await news(in: store) { _ = try await keys(1, below: serial, in: store) }
      #expect(none == [])
      let first = try #require(
        try await store.keys(.all, after: nil, limit: 10).records.map(\.key)
          .first { $0.androidEvidence?.contains(Hex.encode(serial)) == true })
      var second: [DeviceKey] = []
      let registered = try await news(in: store) { second = try await keys(1, below: serial, in: store) }
      #expect(registered == [.key(first.keyID)])
      let third = try await keys(1, below: serial, in: store)
      let removed = try await news(in: store) {
        _ = try await store.remove([first.keyID, second[0].keyID], unusedSince: nil)
      }
      #expect(removed == [.key(first.keyID), .key(second[0].keyID), .key(third[0].keyID)])
      // A refused registration changes nothing.
      var answer: Insertion?
      let refused = try await news(in: store) { answer = try await store.register(Fixture.registration(of: third[0])) }
      #expect(refused == [] && answer == .keyExists)
    },
    StoreInvariant("Beyond the greatest metric, a registration notifies of nothing") { store async throws in
      let serial = SecureRandom.bytes(16)
      _ = try await keys(AttestationKeyRisk.greatest - 1, below: serial, in: store)
      let last = try await news(in: store) { _ = try await keys(1, below: serial, in: store) }
      #expect(last.count == AttestationKeyRisk.greatest - 1)
      let next = try await news(in: store) { _ = try await keys(1, below: serial, in: store) }
      #expect(next == [])
    },
    StoreInvariant("Keys are revoked together when they are more than the threshold, each by one of 20 calls") {
      store async throws in
      let keys = try await keys(6, in: store)
      let others = try await StoreInvariant.keys(2, in: store)
      #expect(try await store.revoke(keys[1].keyID, at: after(1)))
      let below = try await store.revokeKeys(attestedLike: keys[0].keyID, above: 6, at: after(9))
      #expect(below == .nothing(metric: 6))
      let start = try await store.changes(after: nil).position
      let revoked = try await tally(20) { _ in
        let revocation = try await store.revokeKeys(attestedLike: keys[0].keyID, above: 5, at: after(9))
        #expect(revocation.metric == 6)
        return Set(revocation.keys)
      }
      #expect(revoked == [[]: 19, Set(keys.map(\.keyID)).subtracting([keys[1].keyID]): 1])
      #expect(try await store.changes(after: start).changes.count == 5)
      #expect(try await store.record(of: keys[1].keyID)?.revokedAt == after(1))
      #expect(try await store.record(of: keys[5].keyID)?.revokedAt == after(9))
      #expect(try await store.admit(Fixture.use(of: keys[5])) == .revoked)
      #expect(try await store.admit(Fixture.use(of: others[0])) == .admitted)
      let gone = try await store.revokeKeys(attestedLike: Fixture.androidKey().keyID, above: 0, at: after(9))
      #expect(gone == .nothing(metric: 0))
    },
    StoreInvariant(
      "Of 20 concurrent registrations below one attestation key, gates hear so that none keeps a lower metric"
    ) {
      store async throws in
      let serial = SecureRandom.bytes(16)
      let all = (0..<20).map { _ in Fixture.androidKey(serial: serial) }
      let start = try await store.changes(after: nil).position
      _ = try await tally(20) { number in try await store.register(Fixture.registration(of: all[number])) }
      #expect(try await risks(of: all, in: store).map { $0?.newest.metric } == [Int?](repeating: 20, count: 20))
      // Each key is notified of once for each key that was stored after it.
      #expect(try await store.changes(after: start).changes.count == 190)
    },
    StoreInvariant("Lists and tallies use the metric of Android keys") { store async throws in
      let (first, second) = (try await keys(3, in: store), try await keys(1, package: "com.example.other", in: store))
      let factory = try await registeredKey(in: store, Fixture.factoryKey())
      func list(_ risk: RiskSelection) async throws -> Set<KeyID> {
        Set(try await store.keys(KeySelection(risk: risk), after: nil, limit: 10).records.map(\.key.keyID))
      }
      #expect(try await list(.metric(2...Int.max)) == Set(first.map(\.keyID)))
      #expect(try await list(.metric(1...1)) == Set(second.map(\.keyID)))
      #expect(try await list(.unknown) == [factory.keyID])
      for limit in [1, 2, 100] {
        var tally = try await store.riskTally(after: nil, limit: limit)
        while let cursor = tally.next { tally.add(try await store.riskTally(after: cursor, limit: limit)) }
        #expect(
          tally.counts == [
            .init(app: "com.example.app", metric: 3): 3, .init(app: "com.example.app", metric: nil): 1,
            .init(app: "com.example.other", metric: 1): 1,
          ])
      }
    },
    StoreInvariant("A copy has no counted metric, and counts its own keys") { store async throws in
      let keys = try await keys(3, in: store)
      let entries = try await store.entries(after: nil, limit: 10)
      #expect(entries.map(\.record.risk) == [nil, nil, nil])
      #expect(try await store.remove([keys[0].keyID, keys[1].keyID], unusedSince: nil) == 2)
      #expect(try await risks(of: [keys[2]], in: store).map { $0?.newest.metric } == [1])
      let merged = try await news(in: store) { _ = try await store.merge(entries) }
      #expect(merged.contains(.key(keys[2].keyID)))
      #expect(try await risks(of: keys, in: store).map { $0?.newest.metric } == [3, 3, 3])
      #expect(try await store.entries(after: nil, limit: 10) == entries)
    },
  ]
}
