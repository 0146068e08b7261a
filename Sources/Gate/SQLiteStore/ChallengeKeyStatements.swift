internal import AttestGate
internal import ByteCoding
internal import Foundation
internal import GRDB

/// The statements on the table of challenge keys. Position 0 issues nonces.
struct ChallengeKeyStatements {
  let db: Database

  func ring(orStoring candidate: ChallengeKeyRing) throws -> ChallengeKeyRing {
    if let stored = try ring() { return stored }
    try insert(candidate)
    return candidate
  }

  func replace(with ring: ChallengeKeyRing) throws {
    try db.execute(sql: "DELETE FROM challenge_keys")
    try insert(ring)
    try ChangeStatements(db: db).note(nil)
  }

  func replace(_ expected: ChallengeKeyRing, with ring: ChallengeKeyRing) throws -> Bool {
    guard try self.ring() == expected else { return false }
    try replace(with: ring)
    return true
  }

  private func ring() throws -> ChallengeKeyRing? {
    let rows = try Row.fetchAll(
      db, sql: "SELECT number, secret, retires_at, made_at FROM challenge_keys ORDER BY position")
    do throws(MalformedColumn) {
      return ChallengeKeyRing(keys: try rows.map(Self.key))
    } catch {
      throw StoreError.corrupt(reason: "challenge_keys.\(error.name) is malformed")
    }
  }

  private static func key(in row: Row) throws(MalformedColumn) -> ChallengeKey {
    let number = try row.read("number") { $0 as UInt8 }
    let retiresAt = try row.readIfPresent("retires_at", Timestamp.init(milliseconds:))
    let madeAt = try row.readIfPresent("made_at", Timestamp.init(milliseconds:))
    return try row.read("secret") {
      ChallengeKey(number: number, secret: Array($0 as Data), retiresAt: retiresAt, madeAt: madeAt)
    }
  }

  private func insert(_ ring: ChallengeKeyRing) throws {
    for (position, key) in ring.keys.enumerated() {
      try db.execute(
        sql: "INSERT INTO challenge_keys (position, number, secret, retires_at, made_at) VALUES (?, ?, ?, ?, ?)",
        arguments: [
          position, Int64(key.number), Data(key.secret), key.retiresAt?.milliseconds, key.madeAt?.milliseconds,
        ])
    }
  }
}
