internal import AppAttest
internal import AttestGate
internal import Foundation
internal import GRDB

/// The statements on the list of changes, from which other processes learn about changes of this one.
struct ChangeStatements {
  let db: Database

  /// Records a change of `keyID`, or of the shared keys (`nil`), in the transaction of the change.
  func note(_ keyID: KeyID?) throws {
    try db.execute(sql: "UPDATE change_position SET position = position + 1 WHERE id = 1")
    try db.execute(
      sql: "INSERT INTO changes (position, key_id) SELECT position, ? FROM change_position WHERE id = 1",
      arguments: [keyID.map { Data($0.bytes) }])
    try db.execute(
      sql: "DELETE FROM changes WHERE position <= (SELECT position FROM change_position WHERE id = 1) - ?",
      arguments: [Changes.kept])
  }

  /// Returns the changes after `position` and the newest position. Every process polls it each second, so it must be
  /// cheap.
  func changes(after position: ChangePosition?) throws -> Changes {
    let newest = try Row.fetchOne(
      db.cachedStatement(sql: "SELECT position FROM change_position WHERE id = 1"))
    let found = try Row.fetchAll(
      db.cachedStatement(
        sql: "SELECT position, key_id FROM changes WHERE position > ? ORDER BY position LIMIT 1000"),
      arguments: [position?.value ?? .max])
    do throws(MalformedColumn) {
      guard let newest = try newest?.read("position", { $0 as Int64 }) else { throw MalformedColumn(name: "position") }
      var rows: [(position: Int64, keyID: KeyID?)] = []
      for row in found {
        let number = try row.read("position") { $0 as Int64 }
        do throws(MalformedColumn) {
          let keyID = try row.readIfPresent("key_id") { KeyID(bytes: Array($0 as Data)) }
          rows.append((number, keyID))
        } catch {
          // Which key has changed is not known, and the changes that follow must arrive.
          return Changes([.everything], upTo: ChangePosition(newest))
        }
      }
      return Changes(rows, after: position, newest: newest)
    } catch {
      throw StoreError.corrupt(reason: "changes.\(error.name) is malformed")
    }
  }
}
