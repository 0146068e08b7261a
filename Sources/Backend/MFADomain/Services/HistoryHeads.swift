public import ByteCoding

/// Signs the end of the history at intervals, for the log, which the writers of the database cannot change.
public actor HistoryHeads {
  /// The entry of an earlier head was removed from the history or changed.
  public struct Lost: Error, Sendable, Hashable {
    public let head: HistoryHead
  }

  private let store: any Store
  private let keys: HistoryKeys
  private let clock: WallClock
  private var last: HistoryHead?

  public init(_ store: any Store, _ keys: HistoryKeys, clock: WallClock = .system) {
    self.store = store
    self.keys = keys
    self.clock = clock
  }

  /// Returns the signed head of the history; `nil` for an empty history.
  ///
  /// - Throws: `Lost` if the entry of the previous head was removed or changed; the next call signs the history as it
  ///   is then. `MFAStoreError`.
  public func next() async throws -> HistoryHead? {
    let known = last
    let (end, kept) = try await store.read { records in
      (
        try records.lastAuditEntry(),
        try known.map { try records.auditEntries(after: $0.sequence - 1, atMost: 1).first }
      )
    }
    last = nil
    if let known, kept??.entry.sequence != known.sequence || kept??.hash != known.hash { throw Lost(head: known) }
    last = end.flatMap { keys.head($0.sequence, $0.hash, at: clock.now()) }
    return last
  }
}
