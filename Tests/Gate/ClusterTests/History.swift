import AppAttest
import AttestGate
import Locking
import StoreConformance
import TestSupport
import Testing

/// Records what several gates did to one database and which answers they got, for a check at the end.
///
/// No crash may make the database accept a nonce or a key's counter twice, or lose an acknowledged write.
final class History: Sendable {
  private struct Log {
    var registered: [Registration] = []
    var admitted: [KeyUse] = []
    /// Every nonce that was used in a call, with any outcome.
    var shown: [Nonce] = []
    var refusals = 0
  }

  private let log = LockedValue(Log())

  var countOfAdmissions: Int { log.withLock { $0.admitted.count } }
  var countOfRefusals: Int { log.withLock { $0.refusals } }

  /// Registers keys and admits them through any of `stores`, replaying earlier nonces, until the task is cancelled.
  ///
  /// A store error counts as a refusal and is not retried; a replay may use the same nonce later.
  func work(on stores: [any GateStore], seed: UInt64) async {
    var random = SeededGenerator(seed: seed)
    var keys: [(key: DeviceKey, counter: UInt32)] = []
    while !Task.isCancelled {
      guard let store = stores.randomElement(using: &random) else { return }
      if keys.count < 4 || Int.random(in: 0..<50, using: &random) == 0 {
        let isAndroid = Bool.random(using: &random)
        let registration = Fixture.registration(of: isAndroid ? Fixture.androidKey() : Fixture.key())
        if await insert(registration, in: store) { keys.append((registration.key, 0)) }
        continue
      }
      let index = Int.random(in: keys.indices, using: &random)
      keys[index].counter += 1
      let isReplay = Int.random(in: 0..<4, using: &random) == 0
      let nonce = (isReplay ? log.withLock { $0.shown.randomElement(using: &random) } : nil) ?? Fixture.nonce()
      // Sometimes reuses an earlier counter, which may be accepted at most once.
      let back = UInt32.random(in: 0...2, using: &random)
      let counter = max(1, keys[index].counter - min(back, keys[index].counter))
      await admit(Fixture.nextUse(of: keys[index].key, counter, over: nonce, window: 8), by: store)
    }
  }

  private func insert(_ registration: Registration, in store: any GateStore) async -> Bool {
    guard let insertion = try? await store.register(registration) else { return false }
    guard insertion == .inserted else { return false }
    log.withLock { $0.registered.append(registration) }
    return true
  }

  private func admit(_ use: KeyUse, by store: any GateStore) async {
    log.withLock { $0.shown.append(use.nonce) }
    do throws(StoreError) {
      let answer = try await store.admit(use)
      log.withLock { log in
        if answer == .admitted { log.admitted.append(use) }
      }
    } catch {
      log.withLock { $0.refusals += 1 }
      await Task.yield()
    }
  }

  /// Checks that no nonce and no counter was accepted twice and that no acknowledged write is missing.
  func check(in store: any GateStore) async throws {
    let (registered, admitted) = log.withLock { ($0.registered, $0.admitted) }
    #expect(!admitted.isEmpty && !registered.isEmpty)
    #expect(Set(admitted.map(\.nonce)).count == admitted.count, "a nonce was accepted twice")
    for registration in registered {
      let record = try await store.record(of: registration.key.keyID)
      #expect(record?.request == registration.request, "an acknowledged registration is missing")
      let receipt = try await store.receipt(of: registration.key.keyID)
      #expect(receipt == (registration.key.platform == .ios ? registration.receipt : nil))
    }
    for (keyID, uses) in Dictionary(grouping: admitted, by: \.keyID) {
      // Keys of Android have no counter.
      let counters = uses.compactMap(\.counter)
      #expect(counters.isEmpty || Set(counters).count == uses.count, "a counter was accepted twice")
      let stored = try #require(try await store.record(of: keyID)).counter
      #expect(counters.allSatisfy { $0 <= stored }, "a counter decreased")
    }
    for use in admitted {
      let again = KeyUse(
        keyID: use.keyID, counter: SignCount(.max), nonce: use.nonce, window: .none, at: Fixture.now)
      #expect(try await store.admit(again) == .nonceSpent)
    }
    #expect(try await store.findings(isThorough: true).filter { $0.area == .data } == [])
  }
}
