public import ByteCoding

/// Signs where the history ends, again and again, for a place that the database's own writers cannot change: the log.
public actor HistoryHeads {
  /// An entry that a head was signed for is not in the history any more, or is another one.
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

  /// A signed head of the history as it is now.
  ///
  /// - Throws: `Lost` if the history does not have the entry of the head before this one; the next call signs what is
  ///   there then. `StoreFault`.
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
