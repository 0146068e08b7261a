internal import ByteCoding

/// Verifies and exports the history.
public struct AuditTrail: Sendable {
  let store: any Store
  private let keys: HistoryKeys?
  static let batch = 500

  /// - Parameter keys: the keys of `Vault.historyKeys(in:with:)`. Without them no entry with a key can be verified.
  public init(_ store: any Store, _ keys: HistoryKeys?) {
    self.store = store
    self.keys = keys
  }

  /// The place and the kind of a broken chain.
  public enum Violation: Error, Sendable, Hashable {
    /// An entry does not match its hash.
    case changed(sequence: Int64)
    /// An entry does not follow the entry before it: one was removed, inserted or moved.
    case broken(sequence: Int64)
    /// The chain ends before a known entry.
    case cutOff(at: Int64, expected: Int64)
    /// An entry has no key, or an older one than the entry before it.
    case olderKey(sequence: Int64)
    /// An entry has a key that is not in the database.
    case unknownKey(sequence: Int64, key: UInt32)
    /// There is no entry under the newest key, although its first entry was written with it: the end was removed, or
    /// the whole history.
    case keyWithoutEntries(key: UInt32)
    /// The database has no key for its history.
    case noKey
  }

  /// The result of a verification.
  public struct Verdict: Sendable, Hashable {
    public let entries: Int64
    /// The hash of the last entry. A copy of it in another place proves later that the end was not removed.
    public let lastHash: [UInt8]
    /// The number of entries at the beginning that an older version wrote without a key. The first entry with a key
    /// covers them.
    public let unkeyed: Int64
    /// The first fault.
    public let fault: Violation?
  }

  /// The state after the last entry that was read.
  private struct Position {
    var sequence: Int64 = 0
    var hash = AuditEntry.origin
    var key: UInt32?
    var unkeyed: Int64 = 0
  }

  /// An entry that was seen earlier.
  public typealias KnownEntry = (sequence: Int64, hash: [UInt8])

  /// Verifies every entry against its hash, its key and the entry before it. Writes nothing.
  ///
  /// - Parameter known: entries seen earlier, which must still be there.
  public func verify(known: [KnownEntry] = []) async throws -> Verdict {
    var position = Position()
    do {
      while true {
        let after = position.sequence
        let batch = try await store.read { try $0.auditEntries(after: after, atMost: Self.batch) }
        for (entry, hash) in batch { try check(entry, hash, known, &position) }
        if batch.count < Self.batch { break }
        // SQLite reads on this thread, which others need, too.
        await Task.yield()
      }
      try checkEnd(position, known)
    } catch let fault as Violation {
      return Verdict(entries: position.sequence, lastHash: position.hash, unkeyed: position.unkeyed, fault: fault)
    }
    return Verdict(entries: position.sequence, lastHash: position.hash, unkeyed: position.unkeyed, fault: nil)
  }

  private func check(
    _ entry: AuditEntry, _ hash: [UInt8], _ known: [KnownEntry], _ position: inout Position
  ) throws(Violation) {
    if let number = entry.keyNumber {
      guard number >= position.key ?? 0 else { throw .olderKey(sequence: entry.sequence) }
    } else if position.key != nil {
      throw .olderKey(sequence: entry.sequence)
    }
    let expected = entry.keyNumber == nil ? entry.unkeyedHash : keys?.hash(of: entry)
    guard let expected else { throw .unknownKey(sequence: entry.sequence, key: entry.keyNumber ?? 0) }
    guard constantTimeEqual(expected, hash),
      known.allSatisfy({ $0.sequence != entry.sequence || constantTimeEqual($0.hash, hash) })
    else { throw .changed(sequence: entry.sequence) }
    guard entry.sequence == position.sequence + 1, entry.previous == position.hash else {
      throw .broken(sequence: entry.sequence)
    }
    position.sequence = entry.sequence
    position.hash = hash
    position.key = entry.keyNumber
    if entry.keyNumber == nil { position.unkeyed = entry.sequence }
  }

  private func checkEnd(_ position: Position, _ known: [KnownEntry]) throws(Violation) {
    if let last = known.map(\.sequence).max(), last > position.sequence {
      throw .cutOff(at: position.sequence, expected: last)
    }
    guard let keys else { throw .noKey }
    guard position.key == keys.newest else { throw .keyWithoutEntries(key: keys.newest) }
  }

  /// Calls `body` with each entry and its hash, in order.
  public func forEach(_ body: (AuditEntry, [UInt8]) throws -> Void) async throws {
    var sequence: Int64 = 0
    while true {
      let after = sequence
      let batch = try await store.read { try $0.auditEntries(after: after, atMost: Self.batch) }
      for (entry, hash) in batch { try body(entry, hash) }
      guard let last = batch.last, batch.count == Self.batch else { return }
      sequence = last.entry.sequence
    }
  }
}
