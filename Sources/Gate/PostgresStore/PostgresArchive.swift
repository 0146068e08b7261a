internal import AppAttest
public import AttestGate
internal import ByteCoding
public import Databases

/// Operator commands on a whole PostgreSQL database.
public struct PostgresArchive: StoreArchive {
  private let parameters: ConnectionParameters
  private let dialer: Dialer

  public init(_ parameters: ConnectionParameters) {
    self.parameters = parameters
    dialer = Dialer(parameters: parameters, limits: .patient)
  }

  public var place: String { "postgres://\(parameters.place)" }

  public func schema() throws(StoreError) -> SchemaState { try PostgresSchema.state(dialer.connect()) }

  public func migrate() throws(StoreError) -> SchemaChange {
    let connection = try dialer.connect()
    let before = try PostgresSchema.state(connection)
    try StoreLease.share(on: connection)
    try PostgresSchema.migrate(connection)
    return SchemaChange(from: before, PostgresSchema.migrations.dropFirst(before.version).map(\.title))
  }

  public func copyOut(_ take: ([KeyEntry]) throws -> Void) throws {
    let connection = try dialer.connect()
    _ = try connection.ask(Call("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY"))
    var page = try CatalogStatements.entries(after: nil, limit: Self.pageSize, on: connection)
    while let last = page.last {
      try take(page)
      page = try CatalogStatements.entries(after: last.record.key.keyID, limit: Self.pageSize, on: connection)
    }
    _ = try connection.ask(Call("COMMIT"))
  }

  private static let pageSize = 500

  public func replace(
    with start: ArchiveHeader, _ feed: (_ take: ([KeyEntry]) throws -> Void) throws -> Void
  ) throws -> String? {
    let connection = try dialer.connect()
    guard try StoreLease.takeAlone(on: connection) else { throw StoreInUse() }
    try PostgresSchema.migrate(connection)
    var feedFault: (any Error)?
    _ = try connection.transaction { connection throws(StoreError) -> Bool? in
      _ = try connection.ask(Self.emptying.map { Call($0) })
      do {
        try feed { entries in
          _ = try connection.ask(entries.flatMap(CatalogStatements.mergeCalls))
        }
      } catch {
        feedFault = error
        return nil
      }
      _ = try connection.ask(
        [
          // The skipped position makes readers of earlier positions receive `.everything`.
          Call("UPDATE change_position SET position = position + 1 WHERE id = 1"), Call("DELETE FROM changes"),
          Call("UPDATE nonce_watermark SET issued_at = $1 WHERE id = 1", Parameter(start.instant.milliseconds)),
        ] + ChallengeKeyStatements.replacement(by: start.ring))
      return true
    }
    if let feedFault { throw feedFault }
    return nil
  }

  // TRUNCATE would require ownership of the tables.
  private static let emptying = ["receipts", "attested_keys", "spent_nonces", "challenge_keys"]
    .map { "DELETE FROM \($0)" }
}
