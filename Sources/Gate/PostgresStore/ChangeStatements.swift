internal import AppAttest
internal import AttestGate
internal import Databases

/// The statements on the list of changes, from which gates learn about changes of other processes.
enum ChangeStatements {
  /// The channel that is notified of each change. The notification has no payload.
  static let channel = "sallyport_changes"

  /// Returns the statements that record a change of `keyID`, or of the shared keys (`nil`), in the transaction of the
  /// change.
  static func note(_ keyID: KeyID?) -> [Call] {
    [Call(note, Parameter(keyID?.bytes)), notify, pruning]
  }

  /// Wakes the gates that listen, at the commit.
  static let notify = Call(Statement("notify", "SELECT pg_notify('\(channel)', '')"))

  /// Removes the changes that are no longer kept.
  static let pruning = Call(prune, Parameter(Changes.kept))

  private static let note = Statement(
    "note_change",
    """
    WITH next AS (UPDATE change_position SET position = position + 1 WHERE id = 1 RETURNING position)
    INSERT INTO changes (position, key_id) SELECT position, $1 FROM next
    """)

  private static let prune = Statement(
    "prune_changes",
    "DELETE FROM changes WHERE position <= (SELECT position FROM change_position WHERE id = 1) - $1")

  /// Returns the changes after `position` and the newest position. The newest position is read first.
  ///
  /// Positions become visible in order, so everything up to the returned position is complete.
  static func changes(after position: ChangePosition?, on connection: PostgresConnection) throws(StoreError) -> Changes
  {
    let answers = try connection.ask([
      Call(Statement("newest_change", "SELECT position FROM change_position WHERE id = 1")),
      Call(read, Parameter(position?.value ?? .max)),
    ])
    do throws(MalformedColumn) {
      guard answers.count == 2, let newest = try answers[0].rows.first?.read("position", { $0 as Int64 }) else {
        throw MalformedColumn(name: "position")
      }
      var rows: [(position: Int64, keyID: KeyID?)] = []
      for row in answers[1].rows {
        rows.append((try row.read("position") { $0 }, try row.readIfPresent("key_id", KeyID.init(bytes:))))
      }
      return Changes(rows, after: position, newest: newest)
    } catch {
      throw .corrupt(reason: "changes.\(error.name) is malformed")
    }
  }

  private static let read = Statement(
    "changes", "SELECT position, key_id FROM changes WHERE position > $1 ORDER BY position LIMIT 1000")
}
