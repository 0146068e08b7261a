public import AttestGate
internal import ByteCoding
internal import Locking
internal import Observability
internal import Synchronization
internal import Transport

/// The decisions about keys that wait to be stored.
///
/// A decision only adds an entry, under a lock that is held for a moment; the store is written later, by another task.
/// While the queue is closed, a decision reads one flag.
///
/// Clients choose how many there are, so both parts are bounded. Of the decisions about proven keys, the oldest leave.
/// Refusals that prove no key have a part of their own, in which an address with a quarter replaces its own ones.
public final class DecisionQueue: Sendable {
  /// The maximum number of decisions about proven keys.
  public static let capacity = 4096
  /// The maximum number of refusals that prove no key.
  static let unverifiedCapacity = 256

  private enum Entry: Sendable {
    case admission(KeyHash, at: Timestamp, requestID: String, SocketAddress)
    case refusal(RefusalRing.Entry)
  }

  private struct State: Sendable {
    var entries: [Entry] = []
    /// The place of the oldest entry of a full queue.
    var oldest = 0
    var unverified = RefusalRing(
      capacity: DecisionQueue.unverifiedCapacity, share: DecisionQueue.unverifiedCapacity / 4)

    /// Returns whether an entry left.
    mutating func append(_ entry: Entry) -> Bool {
      guard entries.count >= DecisionQueue.capacity else {
        entries.append(entry)
        return false
      }
      entries[oldest] = entry
      oldest = (oldest + 1) % DecisionQueue.capacity
      return true
    }
  }

  private let isOpen = Atomic(false)
  private let state = LockedValue(State())
  private let dropped: Counter

  /// - Parameter dropped: Counts decisions that are not stored.
  init(dropped: Counter) { self.dropped = dropped }

  /// Accepts decisions from now on.
  public func open() {
    state.withLock { $0.entries.reserveCapacity(Self.capacity) }
    isOpen.store(true, ordering: .relaxed)
  }

  /// Drops the waiting decisions, and accepts no further ones.
  public func close() {
    isOpen.store(false, ordering: .relaxed)
    state.withLock { $0 = State() }
  }

  // MARK: Adding

  /// Adds the admission of a device; nothing for another principal.
  func note(_ admission: Admission, requestID: String, from address: SocketAddress) {
    guard isOpen.load(ordering: .relaxed), case .device(let device) = admission.principal else { return }
    let entry = Entry.admission(device.keyHash, at: admission.at, requestID: requestID, address)
    if state.withLock({ $0.append(entry) }) { dropped.add() }
  }

  /// Adds a refusal; nothing for one that names no key.
  ///
  /// - Parameter provesKey: Whether the request had a valid signature of the key.
  func note(_ entry: RefusalRing.Entry, from address: SocketAddress, provesKey: Bool) {
    guard isOpen.load(ordering: .relaxed), entry.record.key != nil else { return }
    let block = AddressBlock(address)
    let hasDropped =
      provesKey
      ? state.withLock { $0.append(.refusal(entry)) }
      : state.withLock { $0.unverified.append(entry, numbered: 0, of: block) } != nil
    if hasDropped { dropped.add() }
  }

  // MARK: Taking

  /// Removes all waiting decisions and returns them: those about a key in their order, and repeated unverified refusals
  /// as one.
  public func take() -> [KeyDecision] {
    if state.withLock({ $0.entries.isEmpty && $0.unverified.isEmpty }) { return [] }
    var taken = State()
    if isOpen.load(ordering: .relaxed) { taken.entries.reserveCapacity(Self.capacity) }
    state.withLock { swap(&$0, &taken) }
    let entries = taken.entries[taken.oldest...] + taken.entries[..<taken.oldest]
    return entries.map(Self.decision) + Self.merged(taken.unverified.newestFirst.reversed().map(\.entry.record))
  }

  /// Counts decisions that were taken and cannot be stored.
  public func drop(_ count: Int) { dropped.add(UInt64(max(0, count))) }

  private static func decision(_ entry: Entry) -> KeyDecision {
    switch entry {
    case .admission(let hash, let at, let requestID, let address):
      KeyDecision(keyHash: hash.text, kind: .admitted, at: at, address: address.host, requestID: requestID)
    case .refusal(let entry): refusal(entry.record, kind: .refused)
    }
  }

  private static func refusal(
    _ record: RefusalRecord, kind: KeyDecision.Kind, count: Int64 = 1, since: Timestamp? = nil
  ) -> KeyDecision {
    KeyDecision(
      keyHash: record.key ?? "", kind: kind, at: record.at, status: record.status, code: record.code,
      step: record.step, detail: record.detail, address: record.address, requestID: record.requestID, count: count,
      since: since)
  }

  private struct Repetition: Hashable {
    let key: String?
    let code: String
    let step: String
  }

  /// - Parameter records: The oldest first.
  private static func merged(_ records: [RefusalRecord]) -> [KeyDecision] {
    var found: [Repetition: (newest: RefusalRecord, count: Int64, since: Timestamp)] = [:]
    for record in records {
      let repetition = Repetition(key: record.key, code: record.code, step: record.step)
      let earlier = found[repetition]
      found[repetition] = (record, (earlier?.count ?? 0) + 1, earlier?.since ?? record.at)
    }
    return found.values.sorted { $0.newest.at < $1.newest.at }.map {
      refusal($0.newest, kind: .unverified, count: $0.count, since: $0.since)
    }
  }
}
