internal import AppAttest
public import AttestGate
internal import ByteCoding

/// Merges an export into a store. Merging it again changes nothing, so an interrupted import can simply be repeated.
public struct KeyImport: Sendable {
  /// The results of an import.
  public struct Summary: Codable, Sendable, Hashable {
    /// The number of keys that the store did not have.
    public var new = 0
    /// The number of existing keys for which the export had stricter values, or a receipt that the store lacks.
    public var updated = 0
    /// The number of existing keys that did not change.
    public var unchanged = 0

    public init() {}

    public var count: Int { new + updated + unchanged }
  }

  private struct Item {
    let entry: KeyEntry
    let line: Int
    var id: [UInt8] { entry.record.key.keyID.bytes }
  }

  /// The number of keys that are merged in one transaction.
  static let batch = 500

  private let store: any GateStore

  public init(into store: any GateStore) { self.store = store }

  /// Checks by its trailer that the export is complete, and decodes every key, without storing anything. It consumes
  /// `lines`, so it is only for files that can be read again.
  ///
  /// The decoding is not superfluous: the trailer of an export by another program can be right for a line that this
  /// program does not accept.
  public static func verify(_ lines: LineReader) throws(ImportError) {
    let reader = try ExportReader(lines)
    while let (bytes, line) = try reader.next() { _ = try item(bytes, line) }
  }

  /// Merges every key of an export.
  ///
  /// - Parameters:
  ///   - summary: The results so far, also valid after an error.
  ///   - progress: Called with the number of processed keys and the approximate total.
  public func run(
    _ lines: LineReader, summary: inout Summary, progress: (_ count: Int, _ total: Int) -> Void = { _, _ in }
  ) async throws(ImportError) {
    let reader = try ExportReader(lines)
    var items: [Item] = []
    while let (bytes, line) = try reader.next() {
      items.append(try Self.item(bytes, line))
      guard items.count == Self.batch else { continue }
      try await merge(items, &summary)
      items = []
      progress(summary.count, max(reader.expected, summary.count))
    }
    try await merge(items, &summary)
    progress(summary.count, max(reader.expected, summary.count))
  }

  private static func item(_ bytes: [UInt8], _ line: Int) throws(ImportError) -> Item {
    guard let keyLine = LineJSON.value(KeyLine.self, in: bytes) else {
      throw .malformed(line: line, "is not a valid key line")
    }
    do throws(MalformedMember) {
      return Item(entry: try keyLine.entry(), line: line)
    } catch {
      throw .malformed(line: line, "has a malformed value of \(error.name)")
    }
  }

  private func merge(_ items: [Item], _ summary: inout Summary) async throws(ImportError) {
    guard let first = items.first else { return }
    let known = try await asking(at: first.line) { () throws(StoreError) -> [[UInt8]: KeyEntry] in
      try await self.known(among: items)
    }
    var wanted: [KeyEntry] = []
    var unchanged = 0
    for item in items {
      guard let stored = known[item.id] else {
        wanted.append(item.entry)
        continue
      }
      try Self.refuseConflict(stored, item)
      if stored.covers(item.entry) { unchanged += 1 } else { wanted.append(item.entry) }
    }
    summary.unchanged += unchanged
    guard !wanted.isEmpty else { return }
    let new = try await asking(at: first.line) { [wanted] () throws(StoreError) -> Int in
      try await store.merge(wanted)
    }
    summary.new += new
    summary.updated += wanted.count - new
  }

  private func asking<Value>(
    at line: Int, _ body: () async throws(StoreError) -> Value
  ) async throws(ImportError) -> Value {
    do throws(StoreError) { return try await body() } catch { throw .store(error, line: line) }
  }

  private static func refuseConflict(_ stored: KeyEntry, _ item: Item) throws(ImportError) {
    let (former, latter) = (stored.record.key, item.entry.record.key)
    guard former.publicKey == latter.publicKey, former.app == latter.app, former.environment == latter.environment
    else { throw .conflict(line: item.line, key: KeyHash(of: latter.keyID)) }
  }

  /// Returns the stored entries of `items`. Export and store are both in key id order. Where an earlier import was
  /// interrupted, one call therefore finds a whole batch.
  private func known(among items: [Item]) async throws(StoreError) -> [[UInt8]: KeyEntry] {
    let sorted = items.map(\.id).sorted { $0.lexicographicallyPrecedes($1) }
    var known: [[UInt8]: KeyEntry] = [:]
    var rest = sorted[...]
    while let first = rest.first {
      // Reading on in pages would scan a much larger store completely. After the first page, keys are read one by
      // one.
      let limit = rest.count == sorted.count ? sorted.count : 1
      let entries = try await store.entries(after: first.predecessor.flatMap(KeyID.init(bytes:)), limit: limit)
      for entry in entries { known[entry.record.key.keyID.bytes] = entry }
      guard entries.count == limit, let last = entries.last?.record.key.keyID.bytes else { break }
      // With a page of one, a returned later key proves that the store has no key up to it.
      rest = rest.drop { !last.lexicographicallyPrecedes($0) }
    }
    return known
  }
}

extension KeyEntry {
  /// Whether merging `other`, an entry of the same key, would change nothing.
  fileprivate func covers(_ other: KeyEntry) -> Bool {
    let isCounted =
      record.counter > other.record.counter
      || record.counter == other.record.counter && usedCounters | other.usedCounters == usedCounters
    let isRevoked = other.record.revokedAt.map { instant in record.revokedAt.map { $0 <= instant } ?? false } ?? true
    let isSeen = other.record.lastUsedAt.map { instant in record.lastUsedAt.map { $0 >= instant } ?? false } ?? true
    let isMeasured =
      other.record.risk.map { risk in record.risk.map { $0.newest.at >= risk.newest.at } ?? false } ?? true
    let hasReceipt = !receipt.isEmpty || other.receipt.isEmpty
    return isCounted && isRevoked && isSeen && isMeasured && hasReceipt
  }
}

extension [UInt8] {
  /// The big-endian number minus one, with the same number of bytes; `nil` for zero.
  fileprivate var predecessor: [UInt8]? {
    guard let place = lastIndex(where: { $0 != 0 }) else { return nil }
    var bytes = self
    bytes[place] -= 1
    for index in indices[(place + 1)...] { bytes[index] = 0xFF }
    return bytes
  }
}
