internal import ByteCoding
internal import Foundation
internal import MFADomain

extension SQLRecords: SessionRecords {
  func session(_ id: UUID) throws -> LoginSession? {
    try sql.rows("SELECT * FROM sessions WHERE id = ?", [.uuid(id)]).first.map(Self.session)
  }

  func sessions(of userID: UUID) throws -> [LoginSession] {
    try sql.rows("SELECT * FROM sessions WHERE user_id = ? ORDER BY created_at, id", [.uuid(userID)])
      .map(Self.session)
  }

  func insert(_ session: LoginSession) throws {
    try sql.run(
      """
      INSERT INTO sessions (id, user_id, device_id, binding, scope, methods, authenticated_at, created_at, expires_at,
        generation, rotated_at, revoked_at)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      """,
      [
        .uuid(session.id), .uuid(session.userID), .text(session.deviceID?.text), .binding(session.binding),
        .text(session.scope.rawValue), .text(session.methods.joined(separator: " ")), .time(session.authenticatedAt),
        .time(session.createdAt), .time(session.expiresAt), .integer(session.generation), .time(session.rotatedAt),
        .time(session.revokedAt),
      ])
  }

  func update(_ session: LoginSession) throws {
    try sql.run(
      """
      UPDATE sessions SET scope = ?, methods = ?, authenticated_at = ?, generation = ?, rotated_at = ?, revoked_at = ?
      WHERE id = ?
      """,
      [
        .text(session.scope.rawValue), .text(session.methods.joined(separator: " ")), .time(session.authenticatedAt),
        .integer(session.generation), .time(session.rotatedAt), .time(session.revokedAt), .uuid(session.id),
      ])
  }

  func revokeSessions(of userID: UUID, on deviceID: DeviceID?, sparing spared: Int, at now: Timestamp) throws -> Int {
    let live = "user_id = ? AND revoked_at IS NULL AND expires_at > ?" + (deviceID == nil ? "" : " AND device_id = ?")
    let whose: [SQLValue] = [.uuid(userID), .time(now)] + (deviceID.map { [.text($0.text)] } ?? [])
    return try sql.run(
      """
      UPDATE sessions SET revoked_at = ? WHERE \(live) AND id NOT IN
        (SELECT id FROM sessions WHERE \(live) ORDER BY created_at DESC, id DESC LIMIT ?)
      """,
      [.time(now)] + whose + whose + [.integer(spared)])
  }

  func holdSessions(of userID: UUID, sparing spared: UUID?, at now: Timestamp) throws -> Int {
    let pending = SQLValue.text(LoginSession.Scope.pending.rawValue)
    let others = spared == nil ? "" : " AND id <> ?"
    let whose: [SQLValue] = [.uuid(userID), .time(now), pending] + (spared.map { [.uuid($0)] } ?? [])
    return try sql.run(
      """
      UPDATE sessions SET scope = ?
      WHERE user_id = ? AND revoked_at IS NULL AND expires_at > ? AND scope <> ?\(others)
      """,
      [pending] + whose)
  }

  func removeSessions(expiredBefore instant: Timestamp, atMost count: Int) throws -> Int {
    try remove(count, of: "sessions", by: "id", where: "expires_at < ?", [.time(instant)])
  }

  private static func session(_ row: SQLRow) throws -> LoginSession {
    LoginSession(
      id: try row.uuid("id"), userID: try row.uuid("user_id"),
      deviceID: try row.optional("device_id") { try DeviceID(row.text($0)) }, binding: try row.binding("binding"),
      scope: try row.word("scope"), methods: try row.text("methods").split(separator: " ").map(String.init),
      authenticatedAt: try row.time("authenticated_at"), createdAt: try row.time("created_at"),
      expiresAt: try row.time("expires_at"), generation: try row.int("generation"),
      rotatedAt: try row.time("rotated_at"), revokedAt: try row.optional("revoked_at", row.time))
  }
}
