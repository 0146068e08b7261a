internal import AttestGate
internal import ByteCoding
internal import Foundation
internal import GRDB

/// What is said to the table of challenge keys. Position 0 issues.
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
  }

  private func ring() throws -> ChallengeKeyRing? {
    let rows = try Row.fetchAll(db, sql: "SELECT number, secret, retires_at FROM challenge_keys ORDER BY position")
    let keys = try rows.map { row in
      guard let number = row.value("number", as: UInt8.self), let secret = row.bytes("secret"),
        let key = ChallengeKey(number: number, secret: secret, retiresAt: row.timestamp("retires_at"))
      else { throw StoreError.corrupt(reason: "a row of challenge_keys is malformed") }
      return key
    }
    return ChallengeKeyRing(keys: keys)
  }

  private func insert(_ ring: ChallengeKeyRing) throws {
    for (position, key) in ring.keys.enumerated() {
      try db.execute(
        sql: "INSERT INTO challenge_keys (position, number, secret, retires_at) VALUES (?, ?, ?, ?)",
        arguments: [position, Int64(key.number), Data(key.secret), key.retiresAt?.milliseconds])
    }
  }
}
