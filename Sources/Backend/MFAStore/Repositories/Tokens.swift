internal import ByteCoding
internal import Foundation
internal import MFADomain
internal import OneTimePasswords

extension SQLRecords: TokenRecords {
  func insert(_ token: OATHToken) throws {
    try sql.run(
      """
      INSERT INTO oath_tokens (id, serial, maker, name, user_id, kind, secret, algorithm, digits, period, next, drift,
        created_at, assigned_at, last_used_at)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      """,
      [
        .uuid(token.id), .text(token.serial.text), .text(token.maker), .text(token.name?.text),
        token.userID.map(SQLValue.uuid) ?? .null, .text(token.kind.rawValue), .blob(token.secret.bytes),
        .text(token.password.algorithm.rawValue),
        .integer(token.digits), .integer(token.period), .integer(token.next), .integer(token.drift),
        .time(token.createdAt), .time(token.assignedAt), .time(token.lastUsedAt),
      ])
  }

  func update(_ token: OATHToken) throws {
    try sql.run(
      """
      UPDATE oath_tokens SET name = ?, user_id = ?, secret = ?, next = ?, drift = ?, assigned_at = ?, last_used_at = ?
      WHERE id = ?
      """,
      [
        .text(token.name?.text), token.userID.map(SQLValue.uuid) ?? .null,
        .blob(token.secret.bytes), .integer(token.next), .integer(token.drift), .time(token.assignedAt),
        .time(token.lastUsedAt), .uuid(token.id),
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

  func save(_ offer: AppOffer) throws {
    try sql.run(
      """
      INSERT INTO app_offers (session_id, id, user_id, name, secret, algorithm, digits, period, expires_at)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT (session_id) DO UPDATE SET id = excluded.id, user_id = excluded.user_id, name = excluded.name,
        secret = excluded.secret, algorithm = excluded.algorithm, digits = excluded.digits, period = excluded.period,
        expires_at = excluded.expires_at
      """,
      [
        .uuid(offer.sessionID), .uuid(offer.id), .uuid(offer.userID), .text(offer.name.text),
        .blob(offer.secret.bytes), .text(offer.parameters.algorithm.rawValue), .integer(offer.parameters.digits),
        .integer(offer.parameters.period), .time(offer.expiresAt),
      ])
  }

  func appOffer(to sessionID: UUID) throws -> AppOffer? {
    try sql.rows("SELECT * FROM app_offers WHERE session_id = ?", [.uuid(sessionID)]).first.map(Self.offer)
  }

  func appOffers(of userID: UUID) throws -> [AppOffer] {
    try sql.rows("SELECT * FROM app_offers WHERE user_id = ? ORDER BY session_id", [.uuid(userID)]).map(Self.offer)
  }

  func removeAppOffer(to sessionID: UUID) throws {
    try sql.run("DELETE FROM app_offers WHERE session_id = ?", [.uuid(sessionID)])
  }

  func removeAppOffers(of userID: UUID) throws {
    try sql.run("DELETE FROM app_offers WHERE user_id = ?", [.uuid(userID)])
  }

  func removeAppOffers(expiredBefore instant: Timestamp, atMost count: Int) throws -> Int {
    try remove(count, of: "app_offers", by: "session_id", where: "expires_at < ?", [.time(instant)])
  }

  private static func offer(_ row: SQLRow) throws -> AppOffer {
    guard
      let parameters = TOTPParameters(
        checkedAlgorithm: try row.word("algorithm"), digits: try row.int("digits"), period: try row.int("period"))
    else { throw SQLRow.Unreadable(column: "digits") }
    return AppOffer(
      id: try row.uuid("id"), sessionID: try row.uuid("session_id"), userID: try row.uuid("user_id"),
      name: AppName(kept: try row.text("name")), secret: Sealed(bytes: try row.blob("secret")),
      parameters: parameters, expiresAt: try row.time("expires_at"))
  }

  private static func token(_ row: SQLRow) throws -> OATHToken {
    guard
      let token = OATHToken(
        id: try row.uuid("id"), serial: try TokenSerial(row.text("serial")), maker: try row.text("maker"),
        name: try row.optional("name", row.text).map { AppName(kept: $0) },
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
