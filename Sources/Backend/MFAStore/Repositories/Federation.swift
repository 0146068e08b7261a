internal import ByteCoding
internal import Foundation
internal import MFADomain

extension SQLRecords: FederationRecords {
  func insert(_ identity: FederatedIdentity) throws {
    try sql.run(
      """
      INSERT INTO federated_identities (user_id, issuer, subject, created_at, last_used_at) VALUES (?, ?, ?, ?, ?)
      """,
      [
        .uuid(identity.userID), .text(identity.subject.issuer), .text(identity.subject.subject),
        .time(identity.createdAt), .time(identity.lastUsedAt),
      ])
  }

  func update(_ identity: FederatedIdentity) throws {
    try sql.run(
      "UPDATE federated_identities SET last_used_at = ? WHERE user_id = ? AND issuer = ?",
      [.time(identity.lastUsedAt), .uuid(identity.userID), .text(identity.subject.issuer)])
  }

  func federatedIdentity(of subject: ProviderSubject) throws -> FederatedIdentity? {
    try sql.rows(
      "SELECT * FROM federated_identities WHERE issuer = ? AND subject = ?",
      [.text(subject.issuer), .text(subject.subject)]
    ).first.map(Self.identity)
  }

  func federatedIdentities(of userID: UUID) throws -> [FederatedIdentity] {
    try sql.rows("SELECT * FROM federated_identities WHERE user_id = ? ORDER BY issuer", [.uuid(userID)])
      .map(Self.identity)
  }

  func removeFederatedIdentities(of userID: UUID) throws -> Int {
    try sql.run("DELETE FROM federated_identities WHERE user_id = ?", [.uuid(userID)])
  }

  func insert(_ challenge: FederationChallenge) throws {
    try sql.run(
      "INSERT INTO federation_challenges (id, bytes, binding, expires_at, used) VALUES (?, ?, ?, ?, ?)",
      [
        .uuid(challenge.id), .blob(challenge.bytes), .binding(challenge.binding), .time(challenge.expiresAt),
        .truth(challenge.isUsed),
      ])
  }

  func federationChallenge(_ id: UUID) throws -> FederationChallenge? {
    try sql.rows("SELECT * FROM federation_challenges WHERE id = ?", [.uuid(id)]).first.map { row in
      FederationChallenge(
        id: id, bytes: try row.blob("bytes"), binding: try row.binding("binding"),
        expiresAt: try row.time("expires_at"), isUsed: try row.truth("used"))
    }
  }

  func spend(federationChallenge id: UUID, at now: Timestamp) throws -> Bool {
    try sql.run(
      "UPDATE federation_challenges SET used = 1 WHERE id = ? AND used = 0 AND expires_at > ?",
      [.uuid(id), .time(now)]) == 1
  }

  func removeFederationChallenges(expiredBefore instant: Timestamp, atMost count: Int) throws -> Int {
    try remove(count, of: "federation_challenges", by: "id", where: "expires_at < ?", [.time(instant)])
  }

  private static func identity(_ row: SQLRow) throws -> FederatedIdentity {
    FederatedIdentity(
      userID: try row.uuid("user_id"),
      subject: ProviderSubject(issuer: try row.text("issuer"), subject: try row.text("subject")),
      createdAt: try row.time("created_at"), lastUsedAt: try row.optional("last_used_at", row.time))
  }
}
