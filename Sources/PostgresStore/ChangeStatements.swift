internal import AppAttest
internal import AttestGate

/// What is said to the list of changes, by which gates learn what others did.
enum ChangeStatements {
  /// The channel that is notified of each change; the notice itself says nothing.
  static let channel = "sallyport_changes"

  /// How many changes are kept for those who have not read them. Who comes later reads everything anew.
  private static let kept: Int64 = 10_000

  /// Notes a change of `keyID`, or of the challenge keys (`nil`), in the transaction that makes it.
  static func note(_ keyID: KeyID?) -> [Call] {
    [
      Call(note, Parameter(keyID?.bytes)), Call(Statement("notify", "SELECT pg_notify('\(channel)', '')")),
      Call(prune, Parameter(kept)),
    ]
  }

  private static let note = Statement(
    "note_change",
    """
    WITH next AS (UPDATE change_position SET position = position + 1 WHERE id = 1 RETURNING position)
    INSERT INTO changes (position, key_id) SELECT position, $1 FROM next
    """)

  private static let prune = Statement(
    "prune_changes",
    "DELETE FROM changes WHERE position <= (SELECT position FROM change_position WHERE id = 1) - $1")
}
