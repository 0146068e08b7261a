internal import ByteCoding
internal import Foundation
internal import MFADomain
internal import OneTimePasswords

extension SQLRecords: FactorRecords {
  func totp(of userID: UUID) throws -> TOTPFactor? {
    try sql.rows("SELECT * FROM totp_factors WHERE user_id = ?", [.uuid(userID)]).first.map { row in
      guard
        let parameters = TOTPParameters(
          checkedAlgorithm: try row.word("algorithm"), digits: try row.int("digits"), period: try row.int("period"))
      else { throw SQLRow.Unreadable(column: "digits") }
      return TOTPFactor(
        userID: userID, secret: Sealed(bytes: try row.blob("secret")), parameters: parameters,
        createdAt: try row.time("created_at"), confirmedAt: try row.optional("confirmed_at", row.time),
        lastStep: try row.integer("last_step"), drift: try row.integer("drift"))
    }
  }

  func save(_ factor: TOTPFactor) throws {
    try sql.run(
      """
      INSERT INTO totp_factors (user_id, secret, algorithm, digits, period, created_at, confirmed_at, last_step, drift)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT (user_id) DO UPDATE SET secret = excluded.secret, algorithm = excluded.algorithm,
        digits = excluded.digits, period = excluded.period, created_at = excluded.created_at,
        confirmed_at = excluded.confirmed_at, last_step = excluded.last_step, drift = excluded.drift
      """,
      [
        .uuid(factor.userID), .blob(factor.secret.bytes), .text(factor.parameters.algorithm.rawValue),
        .integer(factor.parameters.digits), .integer(factor.parameters.period), .time(factor.createdAt),
        .time(factor.confirmedAt), .integer(factor.lastStep), .integer(factor.drift),
      ])
  }

  func removeTOTP(of userID: UUID) throws {
    try sql.run("DELETE FROM totp_factors WHERE user_id = ?", [.uuid(userID)])
  }

  func replaceBackupCodes(of userID: UUID, with hashes: [[UInt8]]) throws {
    try sql.run("DELETE FROM backup_codes WHERE user_id = ?", [.uuid(userID)])
    for hash in hashes {
      try sql.run("INSERT INTO backup_codes (user_id, hash) VALUES (?, ?)", [.uuid(userID), .blob(hash)])
    }
  }

  func hasBackupCode(_ hash: [UInt8], of userID: UUID) throws -> Bool {
    try !sql.rows(
      "SELECT 1 AS found FROM backup_codes WHERE user_id = ? AND hash = ? AND used_at IS NULL",
      [.uuid(userID), .blob(hash)]
    ).isEmpty
  }

  func spendBackupCode(_ hash: [UInt8], of userID: UUID, at now: Timestamp) throws -> Bool {
    try sql.run(
      "UPDATE backup_codes SET used_at = ? WHERE user_id = ? AND hash = ? AND used_at IS NULL",
      [.time(now), .uuid(userID), .blob(hash)]) == 1
  }

  func isSpentBackupCode(_ hash: [UInt8], of userID: UUID) throws -> Bool {
    try !sql.rows(
      "SELECT 1 AS found FROM backup_codes WHERE user_id = ? AND hash = ? AND used_at IS NOT NULL",
      [.uuid(userID), .blob(hash)]
    ).isEmpty
  }

  func countBackupCodes(of userID: UUID) throws -> Int {
    try sql.rows(
      "SELECT COUNT(*) AS count FROM backup_codes WHERE user_id = ? AND used_at IS NULL", [.uuid(userID)]
    ).first.map { try $0.int("count") } ?? 0
  }

  func email(of userID: UUID) throws -> Sealed? {
    try sql.rows("SELECT email FROM users WHERE id = ?", [.uuid(userID)]).first
      .flatMap { try $0.optional("email", $0.blob) }.map { Sealed(bytes: $0) }
  }

  func saveEmail(_ email: Sealed?, of userID: UUID) throws {
    try sql.run("UPDATE users SET email = ? WHERE id = ?", [.blob(email?.bytes), .uuid(userID)])
  }
}

extension SQLRecords: TrustRecords {
  func insert(_ device: TrustedDevice) throws -> Int64 {
    let rows = try sql.rows(
      """
      INSERT INTO trusted_devices (user_id, token_hash, binding, name, fingerprint, address, created_at, last_used_at,
        expires_at)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id
      """,
      [
        .uuid(device.userID), .blob(device.tokenHash), .binding(device.binding), .text(device.name),
        .text(device.fingerprint), .text(device.address), .time(device.createdAt), .time(device.lastUsedAt),
        .time(device.expiresAt),
      ])
    guard let id = try rows.first?.integer("id") else { throw SQLRow.Unreadable(column: "id") }
    return id
  }

  func trustedDevices(of userID: UUID, at now: Timestamp) throws -> [TrustedDevice] {
    try sql.rows(
      "SELECT * FROM trusted_devices WHERE user_id = ? AND expires_at > ? ORDER BY id", [.uuid(userID), .time(now)]
    ).map { row in
      TrustedDevice(
        id: try row.integer("id"), userID: userID, tokenHash: try row.blob("token_hash"),
        binding: try row.binding("binding"), name: try row.text("name"), fingerprint: try row.text("fingerprint"),
        address: try row.optional("address", row.text), createdAt: try row.time("created_at"),
        lastUsedAt: try row.time("last_used_at"), expiresAt: try row.time("expires_at"))
    }
  }

  func update(_ device: TrustedDevice) throws {
    try sql.run(
      "UPDATE trusted_devices SET last_used_at = ? WHERE id = ?", [.time(device.lastUsedAt), .integer(device.id)])
  }

  func removeTrustedDevice(_ id: Int64, of userID: UUID) throws -> Bool {
    try sql.run("DELETE FROM trusted_devices WHERE id = ? AND user_id = ?", [.integer(id), .uuid(userID)]) == 1
  }

  func removeTrustedDevices(of userID: UUID, boundTo binding: Binding?) throws {
    if let binding {
      try sql.run(
        "DELETE FROM trusted_devices WHERE user_id = ? AND binding = ?", [.uuid(userID), .binding(binding)])
    } else {
      try sql.run("DELETE FROM trusted_devices WHERE user_id = ?", [.uuid(userID)])
    }
  }

  func removeTrustedDevices(expiredBefore instant: Timestamp, atMost count: Int) throws -> Int {
    try remove(count, of: "trusted_devices", by: "id", where: "expires_at < ?", [.time(instant)])
  }
}
