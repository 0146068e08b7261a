public import ByteCoding
public import Foundation

/// Which entries of the history a search returns. All conditions must match.
public struct AuditFilter: Sendable, Hashable {
  /// The maximum bytes of a text.
  public static let mostBytes = 128

  /// The name of the account, in any case.
  public var account: Username?
  /// The id of the account, in place of its name: for each account, also for one whose name the rule of today refuses.
  public var accountID: UUID?
  /// An event such as `user.locked`, or the beginning of several, such as `user`.
  public var event: String?
  /// A part of the initiator.
  public var actor: String?
  /// The beginning of a request id.
  public var requestID: String?
  /// A part of any field. Case is ignored for ASCII letters.
  public var text: String?
  /// Only entries from this time on. A clock can step back: an entry of this time may be before an older one.
  public var since: Timestamp?

  /// Creates a filter that matches every entry.
  public init() {}

  /// - Throws: `InvalidValue` for a text that is too long.
  func check() throws(InvalidValue) {
    for (name, text) in [("event", event), ("actor", actor), ("request", requestID), ("search", text)]
    where text?.utf8.count ?? 0 > Self.mostBytes {
      throw InvalidValue(field: name, rule: "has at most \(Self.mostBytes) bytes")
    }
  }

  func matches(_ entry: AuditEntry) -> Bool {
    if let since, entry.at < since { return false }
    if let event, !Self.isEvent(event, of: entry) { return false }
    if let actor, !Self.contains(entry.actor, actor) { return false }
    if let requestID, !entry.requestID.utf8.starts(with: requestID.utf8) { return false }
    guard let text else { return true }
    return [entry.event, entry.detail, entry.actor, entry.requestID, entry.account ?? ""].contains {
      Self.contains($0, text)
    }
  }

  private static func isEvent(_ event: String, of entry: AuditEntry) -> Bool {
    entry.event.hasBytes(of: event) || entry.event.utf8.starts(with: (event + ".").utf8)
  }

  /// Whether `text` has `part`. Compares bytes: comparing characters takes longer the more marks a character has.
  private static func contains(_ text: String, _ part: String) -> Bool {
    text.utf8.map(lowerCase).hasPart(part.utf8.map(lowerCase))
  }

  private static func lowerCase(_ byte: UInt8) -> UInt8 { (0x41...0x5A).contains(byte) ? byte | 0x20 : byte }
}

/// Entries that a search has found.
public struct AuditFindings: Sendable, Hashable {
  /// The newest first.
  public let entries: [AuditEntry]
  /// The number of entries that were read.
  public let examined: Int
  /// The number before which the search continues; `nil` at the beginning of the history.
  public let next: Int64?
}

extension AuditTrail {
  /// The maximum number of entries that one search reads.
  public static let mostExamined = 20_000

  /// Searches the history from before the entry numbered `sequence`, the newest first.
  ///
  /// Reads at most `mostExamined` entries, each batch in a transaction of its own, so that no search holds the database
  /// for long. Without enough matches among them, the search can be continued at `next`.
  ///
  /// - Parameter count: how many to return; at most 1000.
  /// - Throws: `InvalidValue`; `MFAStoreError`; `MFARefusal.notFound` for an id that no account has.
  public func search(
    _ filter: AuditFilter, before sequence: Int64? = nil, atMost count: Int
  ) async throws -> AuditFindings {
    try filter.check()
    let count = max(1, min(count, 1000))
    let account = try await key(of: filter)
    var (found, examined, position) = ([AuditEntry](), 0, sequence ?? .max)
    while examined < Self.mostExamined {
      let before = position
      let batch = try await store.read {
        try $0.auditEntries(before: before, account: account, atMost: Self.batch)
      }
      for entry in batch {
        (examined, position) = (examined + 1, entry.sequence)
        if filter.matches(entry) { found.append(entry) }
        if found.count == count {
          return AuditFindings(entries: found, examined: examined, next: position > 1 ? position : nil)
        }
      }
      if batch.count < Self.batch { return AuditFindings(entries: found, examined: examined, next: nil) }
      await Task.yield()
    }
    return AuditFindings(entries: found, examined: examined, next: position)
  }

  /// The key under which the history has an account. An account that is not known may still have refusals.
  private func key(of filter: AuditFilter) async throws -> String? {
    if let id = filter.accountID {
      guard let user = try await store.read({ try $0.user(id) }) else { throw MFARefusal.notFound }
      return user.username.key
    }
    guard let name = filter.account else { return nil }
    return try await store.read { try $0.accountKey(of: name) }
  }
}

extension [UInt8] {
  /// Whether `part` is among these bytes.
  func hasPart(_ part: [UInt8]) -> Bool {
    count >= part.count && (0...count - part.count).contains { self[$0...].starts(with: part) }
  }
}
