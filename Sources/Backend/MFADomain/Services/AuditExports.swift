public import ByteCoding
public import Foundation

/// A place in the history: an entry, and the chain up to it.
///
/// The number alone does not tell it: after a restore, the history continues with numbers that it has had before.
public struct AuditPosition: Sendable, Hashable {
  /// The number of the entry; 0 for the place before the first entry.
  public let sequence: Int64
  /// The hash of the entry, 32 bytes; `AuditEntry.origin` before the first entry.
  public let hash: [UInt8]

  /// Creates a place.
  public init(sequence: Int64, hash: [UInt8]) { (self.sequence, self.hash) = (sequence, hash) }

  /// The place before the first entry.
  public static let start = AuditPosition(sequence: 0, hash: AuditEntry.origin)
}

/// How far an export of the history is, and which process continues it.
public struct AuditExport: Sendable, Hashable {
  /// The name of the export.
  public let name: String
  /// The last entry that was exported.
  public var position: AuditPosition
  /// The process that exports.
  public var holder: UUID
  /// When another process may continue.
  public var heldUntil: Timestamp

  /// Creates an export.
  public init(name: String, position: AuditPosition, holder: UUID, heldUntil: Timestamp) {
    self.name = name
    self.position = position
    self.holder = holder
    self.heldUntil = heldUntil
  }

  /// The name under which a restore stores the end of the restored history. No process exports under it.
  public static let restored = "restored"
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

  /// The entries that an export continues with.
  public struct Batch: Sendable {
    /// The entries, at most `batch`.
    public let entries: [Entry]
    /// The last exported entry, if the history does not have it any more.
    public let lost: AuditPosition?
  }

  private let store: any Store
  private let clock: WallClock
  private let holder: UUID

  /// - Parameter holder: the name of this process among all.
  public init(_ store: any Store, clock: WallClock = .system, holder: UUID = UUID()) {
    self.store = store
    self.clock = clock
    self.holder = holder
  }

  /// The end of the history.
  public func end() async throws -> AuditPosition { try await store.read { try $0.auditEnd() } }

  /// The entries after `position`, at most `batch`; `nil` if the history does not have this place.
  public func entries(after position: AuditPosition) async throws -> [Entry]? {
    try await store.read { records in
      guard try records.hasAudit(position) else { return nil }
      return try records.auditEntries(after: position.sequence, atMost: Self.batch)
    }
  }

  /// The last of `positions` that the history has; without one, the end of the history that a restore has brought;
  /// `nil` if neither is known.
  public func last(of positions: [AuditPosition]) async throws -> AuditPosition? {
    try await store.read { records in
      let restored = try records.auditExport(AuditExport.restored)?.position
      return try positions.sorted { $0.sequence > $1.sequence }.first { try records.hasAudit($0) }
        ?? restored.flatMap { try records.hasAudit($0) ? $0 : nil }
    }
  }

  /// The next entries of the export `name`, if this process may continue it; `nil` if another one does. A new export
  /// begins with the next entry.
  public func next(of name: String) async throws -> Batch? {
    let (now, holder) = (clock.now(), holder)
    let (known, end) = try await store.read { (try $0.auditExport(name), try $0.auditEnd()) }
    // Without entries there is nothing to claim, and nothing is written.
    if let known, known.position == end || known.isHeld(byOtherThan: holder, at: now) {
      return known.holder == holder || known.position == end ? Batch(entries: [], lost: nil) : nil
    }
    return try await store.write { records in
      let end = try records.auditEnd()
      var export =
        try records.auditExport(name) ?? AuditExport(name: name, position: end, holder: holder, heldUntil: now)
      guard !export.isHeld(byOtherThan: holder, at: now) else { return nil }
      // A restore moves the position itself. Otherwise the end of the history was removed, or entries were changed.
      let lost = try records.hasAudit(export.position) ? nil : export.position
      if let lost {
        export.position = try lost.sequence < end.sequence ? records.audit(at: lost.sequence) ?? lost : end
      }
      export.holder = holder
      export.heldUntil = now.advanced(by: Self.lease)
      try records.save(export)
      return Batch(
        entries: try records.auditEntries(after: export.position.sequence, atMost: Self.batch), lost: lost)
    }
  }

  /// Records that the entries up to `last` were exported, unless another process continues by now.
  public func advance(_ name: String, to last: Entry) async throws {
    let (holder, position) = (holder, AuditPosition(sequence: last.entry.sequence, hash: last.hash))
    try await store.write { records in
      guard var export = try records.auditExport(name), export.holder == holder,
        export.position.sequence < position.sequence
      else { return }
      export.position = position
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

extension AuditExport {
  /// Whether a process other than `holder` has the export. No lease lasts longer than the difference of the clocks and
  /// its length: one beyond that is of a clock that ran ahead, and would stop the export until then.
  fileprivate func isHeld(byOtherThan holder: UUID, at now: Timestamp) -> Bool {
    let latest = now.advanced(by: AuditExports.lease + RecordMaintenance.clockDifference)
    return self.holder != holder && now < heldUntil && heldUntil <= latest
  }
}

extension AuditRecords {
  /// The end of the history.
  fileprivate func auditEnd() throws -> AuditPosition {
    try lastAuditEntry().map { AuditPosition(sequence: $0.sequence, hash: $0.hash) } ?? .start
  }

  /// Whether the history has this entry with this hash.
  fileprivate func hasAudit(_ position: AuditPosition) throws -> Bool {
    position.sequence == 0 ? position == .start : try audit(at: position.sequence) == position
  }

  /// The place of the entry with this number; `nil` if it is missing.
  fileprivate func audit(at sequence: Int64) throws -> AuditPosition? {
    guard sequence > 0, let found = try auditEntries(after: sequence - 1, atMost: 1).first,
      found.entry.sequence == sequence
    else { return nil }
    return AuditPosition(sequence: sequence, hash: found.hash)
  }
}
