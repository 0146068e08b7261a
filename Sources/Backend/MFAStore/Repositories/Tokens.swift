internal import ByteCoding
internal import Foundation
internal import MFADomain
internal import OneTimePasswords

extension SQLRecords: TokenRecords {
  func insert(_ token: OATHToken) throws {
    try sql.run(
      """
      INSERT INTO oath_tokens (id, serial, maker, user_id, kind, secret, algorithm, digits, period, next, drift,
        created_at, assigned_at, last_used_at)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      """,
      [
        .uuid(token.id), .text(token.serial.text), .text(token.maker), token.userID.map(SQLValue.uuid) ?? .null,
        .text(token.kind.rawValue), .blob(token.secret.bytes), .text(token.password.algorithm.rawValue),
        .integer(token.digits), .integer(token.period), .integer(token.next), .integer(token.drift),
        .time(token.createdAt), .time(token.assignedAt), .time(token.lastUsedAt),
      ])
  }

  func update(_ token: OATHToken) throws {
    try sql.run(
      """
      UPDATE oath_tokens SET user_id = ?, secret = ?, next = ?, drift = ?, assigned_at = ?, last_used_at = ?
      WHERE id = ?
      """,
      [
        token.userID.map(SQLValue.uuid) ?? .null, .blob(token.secret.bytes), .integer(token.next),
        .integer(token.drift), .time(token.assignedAt), .time(token.lastUsedAt), .uuid(token.id),
      ])
  }

  func token(_ serial: TokenSerial) throws -> OATHToken? {
    try sql.rows("SELECT * FROM oath_tokens WHERE serial = ?", [.text(serial.text)]).first.map(Self.token)
  }

  func tokens(of userID: UUID) throws -> [OATHToken] {
    try sql.rows("SELECT * FROM oath_tokens WHERE user_id = ? ORDER BY serial", [.uuid(userID)]).map(Self.token)
  }

  func tokens(after serial: String, atMost count: Int) throws -> [OATHToken] {
    try sql.rows(
      "SELECT * FROM oath_tokens WHERE serial > ? ORDER BY serial LIMIT ?", [.text(serial), .integer(count)]
    ).map(Self.token)
  }

  func removeToken(_ id: UUID) throws { try sql.run("DELETE FROM oath_tokens WHERE id = ?", [.uuid(id)]) }

  private static func token(_ row: SQLRow) throws -> OATHToken {
    guard
      let token = OATHToken(
        id: try row.uuid("id"), serial: try TokenSerial(row.text("serial")), maker: try row.text("maker"),
        userID: try row.optional("user_id", row.uuid), kind: try row.word("kind"),
        secret: Sealed(bytes: try row.blob("secret")), algorithm: try row.word("algorithm"),
        digits: try row.int("digits"), period: try row.int("period"), next: try row.integer("next"),
        drift: try row.integer("drift"), createdAt: try row.time("created_at"),
        assignedAt: try row.optional("assigned_at", row.time),
        lastUsedAt: try row.optional("last_used_at", row.time))
    else { throw SQLRow.Unreadable(column: "digits") }
    return token
  }
}
