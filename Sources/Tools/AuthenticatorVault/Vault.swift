internal import Foundation

/// The entries of one user, and what was removed.
///
/// A value without a clock or a file. `merge` joins the vaults of two devices.
public struct Vault: Sendable, Hashable {
  /// What is known of one entry. Every part only grows, so that vaults can be merged in any order.
  struct Record: Sendable, Hashable {
    /// The last version of the entry; `nil` when it was removed long ago.
    var entry: VaultEntry?
    /// When it was last removed, in milliseconds since 1970.
    var removedAt: Int64?
    /// The additions that no removal has seen, by their times: each import, and each restoration.
    var additions: Set<Int64> = []
    /// The additions that a removal has seen.
    var removedAdditions: Set<Int64> = []
    /// The time of the last removal that does not name what it has seen, as earlier versions of this program write it.
    /// Additions until then count as seen.
    var removedUntil: Int64?

    init(entry: VaultEntry? = nil) {
      self.entry = entry
      if let entry { additions = [entry.createdAt] }
    }

    /// Whether the entry is there: an addition that no removal has seen, and an edit that is later than each removal,
    /// keep it.
    var isPresent: Bool {
      guard let entry else { return false }
      guard let removedAt else { return true }
      return !additions.isEmpty || entry.updatedAt > removedAt
    }

    /// Forgets the additions that a removal has seen.
    mutating func dropSeenAdditions() {
      additions = additions.filter { addition in
        !removedAdditions.contains(addition) && removedUntil.map { addition > $0 } ?? true
      }
    }

    /// Records an addition at `time`. Its own time identifies it, so that two devices give two additions two times,
    /// unless they made them in the same millisecond.
    ///
    /// Where the clock is behind a removal that does not name what it has seen, or at an addition that a removal has
    /// seen, the addition gets a random later time.
    mutating func appendAddition(at time: Int64) {
      var addition = VaultTime.bounded(time)
      while removedAdditions.contains(addition) || removedUntil.map({ addition <= $0 }) ?? false {
        let delay = Int64.random(in: 1...1 << 20)
        let base = max(addition, removedUntil ?? 0)
        // Towards the past where the end of all times is near: removals that do not name what they have seen end long
        // before.
        addition = base > VaultTime.last / 2 ? base - delay : base + delay
      }
      additions.insert(addition)
    }

    /// Joins what another vault knows of the same entry.
    mutating func merge(_ other: Record) {
      entry = Vault.join(entry, other.entry)
      removedAt = [removedAt, other.removedAt].compactMap { $0 }.max()
      removedUntil = [removedUntil, other.removedUntil].compactMap { $0 }.max()
      removedAdditions.formUnion(other.removedAdditions)
      additions.formUnion(other.additions)
      dropSeenAdditions()
    }
  }

  /// How long the content of a removed entry is kept, in milliseconds: 30 days.
  public static let restorableFor: Int64 = 30 * 86_400_000

  var records: [String: Record] = [:]
  /// Members of the vault that this version does not know. They are kept.
  var otherFields: [String: JSONValue] = [:]

  /// Creates an empty vault.
  public init() {}

  /// The entries, sorted by issuer and account without regard to case.
  public var entries: [VaultEntry] { records.values.filter(\.isPresent).compactMap(\.entry).sortedByName() }

  /// What was removed and can be restored, sorted by name, with the time of its removal.
  public var removed: [(entry: VaultEntry, at: Int64)] {
    let records = records.values.filter { !$0.isPresent }
    return records.compactMap(\.entry).sortedByName().compactMap { entry in
      self.records[entry.id]?.removedAt.map { (entry, $0) }
    }
  }

  /// The entry with this identifier; `nil` if there is none or it was removed.
  public subscript(id: String) -> VaultEntry? {
    records[id].flatMap { $0.isPresent ? $0.entry : nil }
  }
}

extension [VaultEntry] {
  /// Compares as people sort names; the identifier decides between equal ones.
  fileprivate func sortedByName() -> [VaultEntry] {
    map { (key: [$0.issuer.lowercased(), $0.account.lowercased(), $0.id], entry: $0) }
      .sorted { $0.key.lexicographicallyPrecedes($1.key) }.map(\.entry)
  }
}

// MARK: Changes

extension Vault {
  /// What became of an entry that was to be added.
  public enum Addition: Sendable, Hashable {
    /// It is new.
    case added
    /// The same secret is there already, under this name.
    case alreadyThere(String)
    /// The same secret is there already, under this name, and had a lower counter: it now has the one that was added.
    case counterRaised(String, to: UInt64)
    /// It had been removed, and is there again.
    case restored
  }

  /// Adds `entry` at `time`, unless one with the same identifier is there. Of that one only the counter changes, to the
  /// higher one: a service accepts no counter twice.
  ///
  /// An addition is an act of `time`, however old the entry says that it is. A removal on another device takes it away
  /// only if that device had seen the addition.
  @discardableResult
  public mutating func add(_ entry: VaultEntry, at time: Int64) -> Addition {
    var entry = entry
    guard var record = records[entry.id] else {
      entry.updatedAt = VaultTime.bounded(max(entry.updatedAt, time))
      entry.createdAt = VaultTime.bounded(entry.createdAt)
      var record = Record()
      record.entry = entry
      record.appendAddition(at: max(entry.createdAt, time))
      records[entry.id] = record
      return .added
    }
    if record.isPresent, let present = record.entry {
      guard entry.kind == .hotp, entry.counter > present.counter else { return .alreadyThere(present.name) }
      records[entry.id]?.entry?.counter = entry.counter
      return .counterRaised(present.name, to: entry.counter)
    }
    entry.counter = max(entry.counter, record.entry?.counter ?? 0)
    entry.createdAt = VaultTime.bounded(entry.createdAt)
    entry.updatedAt = Self.time(time, after: record)
    record.entry = entry
    record.appendAddition(at: time)
    records[entry.id] = record
    return .restored
  }

  /// Changes the entry `id` at `time`. The counter only grows.
  ///
  /// - Throws: `.notFound`.
  public mutating func edit(_ id: String, at time: Int64, _ change: (inout VaultEntry) -> Void) throws(VaultError) {
    guard var record = records[id], record.isPresent, var entry = record.entry else { throw .notFound }
    let before = entry
    change(&entry)
    entry.counter = max(entry.counter, before.counter)
    entry.tags = Set(entry.tags).sorted()
    guard entry != before else { return }
    entry.updatedAt = Self.time(time, after: record)
    record.entry = entry
    records[id] = record
  }

  /// Takes the counter of the entry `id` for one code and advances it.
  ///
  /// - Returns: The counter to be used.
  /// - Throws: `.notFound`; `.counterExhausted` after 2^64 − 1 codes.
  public mutating func takeCounter(of id: String) throws(VaultError) -> UInt64 {
    guard let record = records[id], record.isPresent, let entry = record.entry else { throw .notFound }
    guard entry.counter < .max else { throw .counterExhausted }
    records[id]?.entry?.counter += 1
    return entry.counter
  }

  /// Removes the entry `id` at `time`. It can be restored for 30 days.
  ///
  /// - Throws: `.notFound`.
  public mutating func remove(_ id: String, at time: Int64) throws(VaultError) {
    guard var record = records[id], record.isPresent else { throw .notFound }
    record.removedAt = Self.time(time, after: record)
    record.removedAdditions.formUnion(record.additions)
    record.dropSeenAdditions()
    records[id] = record
  }

  /// Restores the removed entry `id` at `time`.
  ///
  /// - Throws: `.notFound` if it was not removed, or more than 30 days ago.
  public mutating func restore(_ id: String, at time: Int64) throws(VaultError) {
    guard var record = records[id], !record.isPresent, record.entry != nil else { throw .notFound }
    let updated = Self.time(time, after: record)
    record.entry?.updatedAt = updated
    record.appendAddition(at: time)
    records[id] = record
  }

  /// Drops the content of entries that were removed more than 30 days before `time`. That they were removed stays
  /// known, so that no other device brings them back.
  public mutating func purge(at time: Int64) {
    for (id, record) in records where record.entry != nil && !record.isPresent {
      // Subtracted on the side of the clock, which is no value of a file.
      if let removedAt = record.removedAt, removedAt < time - Self.restorableFor { records[id]?.entry = nil }
    }
  }

  /// `time`, or the instant after the last change of `record`, if that is later: a device whose clock is behind must
  /// not lose its change.
  private static func time(_ time: Int64, after record: Record) -> Int64 {
    VaultTime.bounded(max(time, VaultTime.next(max(record.entry?.updatedAt ?? 0, record.removedAt ?? 0))))
  }
}

// MARK: Merge

extension Vault {
  /// Joins `other` to this vault.
  ///
  /// Entries are united by their identifier. Of two versions the later edit wins; of two edits of the same millisecond,
  /// both devices choose the same one. A removal wins over each addition that its device had seen, and over an edit
  /// that is not later; an addition that it had not seen keeps the entry, whatever the clocks say. A counter is the
  /// higher one. The result depends on neither order nor repetition: `merge` is commutative, associative and
  /// idempotent.
  public mutating func merge(_ other: Vault) {
    for (id, theirs) in other.records {
      guard let ours = records[id] else {
        records[id] = theirs
        continue
      }
      if ours != theirs { records[id]?.merge(theirs) }
    }
    otherFields.merge(other.otherFields) { $0 == $1 || Self.order($0) >= Self.order($1) ? $0 : $1 }
  }

  fileprivate static func join(_ first: VaultEntry?, _ second: VaultEntry?) -> VaultEntry? {
    guard let first, let second else { return first ?? second }
    let counter = max(first.counter, second.counter)
    var (one, two) = (first, second)
    (one.counter, two.counter) = (counter, counter)
    if one.updatedAt != two.updatedAt { return one.updatedAt > two.updatedAt ? one : two }
    return one == two || order(one) >= order(two) ? one : two
  }

  /// A total order of different values, which all devices share.
  private static func order(_ value: some Encodable) -> String {
    String(decoding: (try? VaultJSON.encoder.encode(value)) ?? Data(), as: UTF8.self)
  }
}
