import AppAttest
import AttestGate
import ByteCoding
import Locking
import SQLiteStore

/// The keys of a store whose calls fail when a test sets an error.
final class UnreadableKeys: KeyRegistry, KeyCatalog {
  private let store: SQLiteStore
  /// The error of reading a record.
  let recordFault = LockedValue<StoreError?>(nil)
  /// The keys whose rows cannot be read.
  let damaged = LockedValue<Set<KeyID>>([])
  /// The error of a revocation, thrown after it was committed.
  let changeFault = LockedValue<StoreError?>(nil)

  init(_ store: SQLiteStore) { self.store = store }

  func record(of keyID: KeyID) async throws(StoreError) -> KeyRecord? {
    if let fault = recordFault.withLock({ $0 }) { throw fault }
    return try await store.record(of: keyID)
  }

  func revoke(_ keyID: KeyID, at now: Timestamp) async throws(StoreError) -> Bool {
    let isThere = try await store.revoke(keyID, at: now)
    if let fault = changeFault.withLock({ $0 }) { throw fault }
    return isThere
  }

  func register(_ registration: Registration) async throws(StoreError) -> Insertion {
    try await store.register(registration)
  }

  func receipt(of keyID: KeyID) async throws(StoreError) -> [UInt8]? { try await store.receipt(of: keyID) }
  func admit(_ use: KeyUse) async throws(StoreError) -> Admittance { try await store.admit(use) }
  func restore(_ keyID: KeyID) async throws(StoreError) -> Bool { try await store.restore(keyID) }

  func forgetNonces(issuedBy instant: Timestamp) async throws(StoreError) {
    try await store.forgetNonces(issuedBy: instant)
  }

  func keys(
    _ selection: KeySelection, in order: KeyOrder, after cursor: KeyID?, limit: Int
  ) async throws(StoreError) -> KeyPage {
    page(try await store.keys(selection, in: order, after: cursor, limit: limit))
  }

  func keys(hashPrefix prefix: String, limit: Int) async throws(StoreError) -> KeyPage {
    page(try await store.keys(hashPrefix: prefix, limit: limit))
  }

  private func page(_ page: KeyPage) -> KeyPage {
    let damaged = damaged.withLock(\.self)
    return KeyPage(
      page.records.filter { !damaged.contains($0.key.keyID) },
      unreadable: page.records.map(\.key.keyID).filter(damaged.contains).map { UnreadableKey($0, reason: "damaged") },
      next: page.next)
  }

  func remove(_ keys: [KeyID], unusedSince instant: Timestamp?) async throws(StoreError) -> Int {
    try await store.remove(keys, unusedSince: instant)
  }

  func latestKnownTime() async throws(StoreError) -> Timestamp? { try await store.latestKnownTime() }

  func entries(after cursor: KeyID?, limit: Int) async throws(StoreError) -> [KeyEntry] {
    try await store.entries(after: cursor, limit: limit)
  }

  func count() async throws(StoreError) -> Int { try await store.count() }
  func merge(_ entries: [KeyEntry]) async throws(StoreError) -> Int { try await store.merge(entries) }

  func findings(isThorough: Bool) async throws(StoreError) -> [StoreFinding] {
    try await store.findings(isThorough: isThorough)
  }
}
