internal import ByteCoding
internal import Foundation
internal import MFADomain

extension SQLRecords: ChallengeRecords {
  func insert(_ challenge: DeviceChallenge) throws {
    try sql.enqueue(
      """
      INSERT INTO challenges (id, username, device_id, nonce, binding, created_at, expires_at, failures, used)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
      """,
      [
        .uuid(challenge.id), .text(challenge.username), .text(challenge.deviceID.text), .blob(challenge.nonce),
        .binding(challenge.binding), .time(challenge.createdAt), .time(challenge.expiresAt),
        .integer(challenge.failures), .truth(challenge.isUsed),
      ])
  }

  func challenge(_ id: UUID) throws -> DeviceChallenge? {
    try sql.rows("SELECT * FROM challenges WHERE id = ?", [.uuid(id)]).first.map { row in
      DeviceChallenge(
        id: id, username: try row.text("username"), deviceID: try DeviceID(row.text("device_id")),
        nonce: try row.blob("nonce"), binding: try row.binding("binding"), createdAt: try row.time("created_at"),
        expiresAt: try row.time("expires_at"), failures: try row.int("failures"), isUsed: try row.truth("used"))
    }
  }

  func spend(challenge id: UUID, at now: Timestamp) throws -> Bool {
    try sql.run(
      "UPDATE challenges SET used = 1 WHERE id = ? AND used = 0 AND failures < ? AND expires_at > ?",
      [.uuid(id), .integer(DeviceChallenge.mostFailures), .time(now)]) == 1
  }

  func countFailure(ofChallenge id: UUID) throws {
    try sql.run("UPDATE challenges SET failures = failures + 1 WHERE id = ?", [.uuid(id)])
  }

  func removeChallenges(of deviceID: DeviceID) throws {
    try sql.run("DELETE FROM challenges WHERE device_id = ?", [.text(deviceID.text)])
  }

  func removeChallenges(expiredBefore instant: Timestamp, atMost count: Int) throws -> Int {
    try remove(count, of: "challenges", by: "id", where: "expires_at < ?", [.time(instant)])
  }
}
