internal import AttestGate
internal import ByteCoding
internal import Cryptography
internal import Foundation
internal import GRDB

/// The statements on the table of identity signing keys. Position 0 is the newest key.
struct IdentityKeyStatements {
  let db: Database

  func ring(orStoring candidate: IdentityKeyRing) throws -> IdentityKeyRing {
    if let stored = try ring() { return stored }
    try insert(candidate)
    return candidate
  }

  func replace(_ expected: IdentityKeyRing, with ring: IdentityKeyRing) throws -> Bool {
    guard try self.ring() == expected else { return false }
    try db.execute(sql: "DELETE FROM identity_keys")
    try insert(ring)
    try ChangeStatements(db: db).note(nil)
    return true
  }

  private func ring() throws -> IdentityKeyRing? {
    let rows = try Row.fetchAll(
      db, sql: "SELECT private_key, signs_from, retires_at FROM identity_keys ORDER BY position")
    do throws(MalformedColumn) {
      return IdentityKeyRing(keys: try rows.map(Self.key))
    } catch {
      throw StoreError.corrupt(reason: "identity_keys.\(error.name) is malformed")
    }
  }

  private static func key(in row: Row) throws(MalformedColumn) -> IdentityKey {
    let signsFrom = try row.read("signs_from", Timestamp.init(milliseconds:))
    let retiresAt = try row.readIfPresent("retires_at", Timestamp.init(milliseconds:))
    let privateKey = try row.read("private_key") { try? P256PrivateKey(pkcs8DER: Array($0 as Data)) }
    return IdentityKey(privateKey: privateKey, signsFrom: signsFrom, retiresAt: retiresAt)
  }

  private func insert(_ ring: IdentityKeyRing) throws {
    for (position, key) in ring.keys.enumerated() {
      try db.execute(
        sql: "INSERT INTO identity_keys (position, private_key, signs_from, retires_at) VALUES (?, ?, ?, ?)",
        arguments: [
          position, Data(try key.privateKey.pkcs8DER), key.signsFrom.milliseconds, key.retiresAt?.milliseconds,
        ])
    }
  }
}
