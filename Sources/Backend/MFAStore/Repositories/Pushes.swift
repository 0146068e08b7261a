internal import ByteCoding
internal import Foundation
internal import MFADomain

extension SQLRecords: PushRecords {
  func insert(_ push: PushChallenge) throws {
    try sql.run(
      """
      INSERT INTO pushes (id, user_id, session_id, number, nonce, address, created_at, expires_at, state, answered_at)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      """,
      [
        .uuid(push.id), .uuid(push.userID), .uuid(push.sessionID), .integer(push.number), .blob(push.nonce),
        .text(push.address), .time(push.createdAt), .time(push.expiresAt), .text(push.state.rawValue),
        .time(push.answeredAt),
      ])
  }

  func push(_ id: UUID) throws -> PushChallenge? {
    try sql.rows("SELECT * FROM pushes WHERE id = ?", [.uuid(id)]).first.map(Self.push)
  }

  func pushes(of userID: UUID, since instant: Timestamp) throws -> [PushChallenge] {
    try sql.rows(
      "SELECT * FROM pushes WHERE user_id = ? AND (created_at > ? OR answered_at > ?) ORDER BY created_at, id",
      [.uuid(userID), .time(instant), .time(instant)]
    ).map(Self.push)
  }

  func update(_ push: PushChallenge) throws {
    try sql.run(
      "UPDATE pushes SET state = ?, answered_at = ? WHERE id = ?",
      [.text(push.state.rawValue), .time(push.answeredAt), .uuid(push.id)])
  }

  func removePushes(createdBefore instant: Timestamp, atMost count: Int) throws -> Int {
    try remove(count, of: "pushes", by: "id", where: "created_at < ?", [.time(instant)])
  }

  func removePushes(createdAfter instant: Timestamp, atMost count: Int) throws -> Int {
    try remove(count, of: "pushes", by: "id", where: "created_at > ?", [.time(instant)])
  }

  private static func push(_ row: SQLRow) throws -> PushChallenge {
    PushChallenge(
      id: try row.uuid("id"), userID: try row.uuid("user_id"), sessionID: try row.uuid("session_id"),
      number: try row.int("number"), nonce: try row.blob("nonce"), address: try row.text("address"),
      createdAt: try row.time("created_at"), expiresAt: try row.time("expires_at"), state: try row.word("state"),
      answeredAt: try row.optional("answered_at", row.time))
  }
}
