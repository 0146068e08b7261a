public import ByteCoding
public import Foundation

/// How far an export of the history is, and which process continues it.
public struct AuditExport: Sendable, Hashable {
  /// The name of the export.
  public let name: String
  /// The number of the last entry that was exported.
  public var sequence: Int64
  /// The process that exports.
  public var holder: UUID
  /// When another process may continue.
  public var heldUntil: Timestamp

  public init(name: String, sequence: Int64, holder: UUID, heldUntil: Timestamp) {
    self.name = name
    self.sequence = sequence
    self.holder = holder
    self.heldUntil = heldUntil
  }
}

/// The entries of the history for exports, each at least once and in their order. Of several backends on one database,
/// one continues an export at a time.
public struct AuditExports: Sendable {
  /// How long a process has an export without a sign of life.
  static let lease = Duration.seconds(30)
  /// The maximum number of entries of one batch.
  public static let batch = 200

  /// An entry with its hash, which is the end of the chain up to it.
  public typealias Entry = (entry: AuditEntry, hash: [UInt8])

  private let store: any Store
  private let clock: WallClock
  private let holder: UUID

  /// - Parameter holder: the name of this process among all.
  public init(_ store: any Store, clock: WallClock = .system, holder: UUID = UUID()) {
    self.store = store
    self.clock = clock
    self.holder = holder
  }

  /// The number of the last entry of the history; 0 if it is empty.
  public func end() async throws -> Int64 { try await store.read { try $0.lastAuditEntry()?.sequence ?? 0 } }

  /// The entries after `sequence`, at most `batch`.
  public func entries(after sequence: Int64) async throws -> [Entry] {
    try await store.read { try $0.auditEntries(after: sequence, atMost: Self.batch) }
  }

  /// The next entries of the export `name`, if this process may continue it; `nil` if another one does. A new export
  /// begins with the next entry.
  public func next(of name: String) async throws -> [Entry]? {
    let (now, holder) = (clock.now(), holder)
    let (known, end) = try await store.read { (try $0.auditExport(name), try $0.lastAuditEntry()?.sequence ?? 0) }
    // Without entries there is nothing to claim, and nothing is written.
    if let known, known.sequence == end || (known.holder != holder && now < known.heldUntil) {
      return known.holder == holder || known.sequence == end ? [] : nil
    }
    return try await store.write { records in
      let end = try records.lastAuditEntry()?.sequence ?? 0
      var export =
        try records.auditExport(name) ?? AuditExport(name: name, sequence: end, holder: holder, heldUntil: now)
      guard export.holder == holder || now >= export.heldUntil else { return nil }
      // The history is shorter after a restore.
      if export.sequence > end { export.sequence = end }
      export.holder = holder
      export.heldUntil = now.advanced(by: Self.lease)
      try records.save(export)
      return try records.auditEntries(after: export.sequence, atMost: Self.batch)
    }
  }

  /// Records that the entries up to `sequence` were exported, unless another process continues by now.
  public func advance(_ name: String, to sequence: Int64) async throws {
    let holder = holder
    try await store.write { records in
      guard var export = try records.auditExport(name), export.holder == holder else { return }
      export.sequence = max(export.sequence, sequence)
      try records.save(export)
    }
  }

  /// Lets another process continue at once.
  public func release(_ name: String) async throws {
    let holder = holder
    try await store.write { records in
      guard var export = try records.auditExport(name), export.holder == holder else { return }
      export.heldUntil = Timestamp(milliseconds: 0)
      try records.save(export)
    }
  }
}
