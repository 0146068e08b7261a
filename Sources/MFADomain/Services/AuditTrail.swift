internal import ByteCoding

/// Checks and hands out the history.
public struct AuditTrail: Sendable {
  private let store: any Store
  private static let batch = 500

  public init(_ store: any Store) { self.store = store }

  /// Where the chain is broken, and how.
  public enum Fault: Sendable, Hashable {
    /// An entry is not the one that its hash was made of.
    case changed(sequence: Int64)
    /// An entry does not follow the one before it: something was taken out, put in or moved.
    case broken(sequence: Int64)
    /// The chain ends before an entry that is known to have been there.
    case cutOff(at: Int64, expected: Int64)
  }

  public struct Verdict: Sendable, Hashable {
    public let entries: Int64
    /// The hash of the last entry. Kept elsewhere, it shows later that nothing was cut off the end.
    public let lastHash: [UInt8]
    /// The first fault.
    public let fault: Fault?
  }

  /// Checks every entry against its hash and its predecessor's.
  ///
  /// - Parameter known: number and hash of an entry seen earlier, which must still be there.
  public func verify(known: (sequence: Int64, hash: [UInt8])? = nil) async throws -> Verdict {
    var (sequence, previous): (Int64, [UInt8]) = (0, AuditEntry.origin)
    while true {
      let after = sequence
      let batch = try await store.read { try $0.auditEntries(after: after, atMost: Self.batch) }
      for (entry, hash) in batch {
        if entry.hash != hash || (known?.sequence == entry.sequence && known?.hash != hash) {
          return Verdict(entries: sequence, lastHash: previous, fault: .changed(sequence: entry.sequence))
        }
        if entry.sequence != sequence + 1 || entry.previous != previous {
          return Verdict(entries: sequence, lastHash: previous, fault: .broken(sequence: entry.sequence))
        }
        (sequence, previous) = (entry.sequence, hash)
      }
      if batch.count < Self.batch { break }
    }
    let isCutOff = (known?.sequence ?? 0) > sequence
    return Verdict(
      entries: sequence, lastHash: previous,
      fault: isCutOff ? .cutOff(at: sequence, expected: known?.sequence ?? 0) : nil)
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
