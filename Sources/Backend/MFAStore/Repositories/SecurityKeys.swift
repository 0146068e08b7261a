internal import ByteCoding
internal import Foundation
internal import MFADomain

extension SQLRecords: SecurityKeyRecords {
  func insert(_ key: SecurityKey) throws {
    try sql.run(
      """
      INSERT INTO security_keys (id, user_id, credential_id, public_key, signature_count, backup_eligible, backed_up,
        transports, name, created_at, last_used_at)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      """,
      [
        .uuid(key.id), .uuid(key.userID), .blob(key.credentialID.bytes), .blob(key.publicKey.encoded),
        .integer(Int64(key.signatureCount)), .truth(key.isBackupEligible), .truth(key.isBackedUp),
        .text(key.transports.joined(separator: " ")), .text(key.name.text), .time(key.createdAt),
        .time(key.lastUsedAt),
      ])
  }

  func update(_ key: SecurityKey) throws {
    try sql.run(
      "UPDATE security_keys SET signature_count = ?, backed_up = ?, name = ?, last_used_at = ? WHERE id = ?",
      [
        .integer(Int64(key.signatureCount)), .truth(key.isBackedUp), .text(key.name.text), .time(key.lastUsedAt),
        .uuid(key.id),
      ])
  }

  func securityKey(_ credentialID: CredentialID) throws -> SecurityKey? {
    try sql.rows("SELECT * FROM security_keys WHERE credential_id = ?", [.blob(credentialID.bytes)]).first
      .map(Self.securityKey)
  }

  func securityKeys(of userID: UUID) throws -> [SecurityKey] {
    try sql.rows("SELECT * FROM security_keys WHERE user_id = ? ORDER BY created_at, id", [.uuid(userID)])
      .map(Self.securityKey)
  }

  func removeSecurityKey(_ id: UUID, of userID: UUID) throws -> Bool {
    try sql.run("DELETE FROM security_keys WHERE id = ? AND user_id = ?", [.uuid(id), .uuid(userID)]) == 1
  }

  func removeSecurityKeys(of userID: UUID) throws {
    try sql.run("DELETE FROM security_keys WHERE user_id = ?", [.uuid(userID)])
  }

  func save(_ challenge: KeyChallenge) throws {
    try sql.run(
      """
      INSERT INTO key_challenges (session_id, ceremony, nonce, expires_at, used) VALUES (?, ?, ?, ?, ?)
      ON CONFLICT (session_id, ceremony) DO UPDATE SET nonce = excluded.nonce, expires_at = excluded.expires_at,
        used = excluded.used
      """,
      [
        .uuid(challenge.sessionID), .text(challenge.ceremony.rawValue), .blob(challenge.nonce),
        .time(challenge.expiresAt), .truth(challenge.isUsed),
      ])
  }

  func keyChallenge(_ ceremony: KeyChallenge.Ceremony, of sessionID: UUID) throws -> KeyChallenge? {
    try sql.rows(
      "SELECT * FROM key_challenges WHERE session_id = ? AND ceremony = ?",
      [.uuid(sessionID), .text(ceremony.rawValue)]
    ).first.map { row in
      KeyChallenge(
        sessionID: sessionID, ceremony: ceremony, nonce: try row.blob("nonce"), expiresAt: try row.time("expires_at"),
        isUsed: try row.truth("used"))
    }
  }

  func spend(_ challenge: KeyChallenge, at now: Timestamp) throws -> Bool {
    try sql.run(
      """
      UPDATE key_challenges SET used = 1
      WHERE session_id = ? AND ceremony = ? AND nonce = ? AND used = 0 AND expires_at > ?
      """,
      [.uuid(challenge.sessionID), .text(challenge.ceremony.rawValue), .blob(challenge.nonce), .time(now)]) == 1
  }

  func removeKeyChallenges(expiredBefore instant: Timestamp, atMost count: Int) throws -> Int {
    try remove(count, of: "key_challenges", by: "session_id, ceremony", where: "expires_at < ?", [.time(instant)])
  }

  private static func securityKey(_ row: SQLRow) throws -> SecurityKey {
    guard let credentialID = CredentialID(bytes: try row.blob("credential_id")),
      let publicKey = try? CredentialPublicKey(cose: row.blob("public_key"))
    else { throw SQLRow.Unreadable(column: "public_key") }
    guard let count = UInt32(exactly: try row.integer("signature_count")) else {
      throw SQLRow.Unreadable(column: "signature_count")
    }
    return SecurityKey(
      id: try row.uuid("id"), userID: try row.uuid("user_id"), credentialID: credentialID, publicKey: publicKey,
      signatureCount: count, isBackupEligible: try row.truth("backup_eligible"), isBackedUp: try row.truth("backed_up"),
      transports: try row.text("transports").split(separator: " ").map(String.init),
      name: try DeviceModel(kept: row.text("name")), createdAt: try row.time("created_at"),
      lastUsedAt: try row.optional("last_used_at", row.time))
  }
}
