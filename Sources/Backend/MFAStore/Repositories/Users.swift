internal import ByteCoding
internal import Foundation
internal import MFADomain

extension SQLRecords: UserRecords {
  func user(named key: String) throws -> User? {
    try sql.rows("SELECT * FROM users WHERE name_key = ?", [.text(key)]).first.map(Self.user)
  }

  func user(_ id: UUID) throws -> User? {
    try sql.rows("SELECT * FROM users WHERE id = ?", [.uuid(id)]).first.map(Self.user)
  }

  func insert(_ user: User) throws {
    try sql.run(
      """
      INSERT INTO users (id, name_key, username, created_at, locked_at, admin, admin_since, created_by, language)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
      """,
      [
        .uuid(user.id), .text(user.username.key), .text(user.username.text), .time(user.createdAt),
        .time(user.lockedAt), .truth(user.isAdmin), .time(user.adminSince),
        user.createdBy.map(SQLValue.binding) ?? .null, .text(user.language),
      ])
  }

  func update(_ user: User) throws {
    try sql.run(
      "UPDATE users SET locked_at = ?, admin = ?, admin_since = ? WHERE id = ?",
      [.time(user.lockedAt), .truth(user.isAdmin), .time(user.adminSince), .uuid(user.id)])
  }

  func saveLanguage(_ tag: String, of userID: UUID) throws {
    try sql.run("UPDATE users SET language = ? WHERE id = ?", [.text(tag), .uuid(userID)])
  }

  func countUsers(createdBy binding: Binding) throws -> Int {
    try sql.rows("SELECT COUNT(*) AS count FROM users WHERE created_by = ?", [.binding(binding)]).first?.int("count")
      ?? 0
  }

  func users(after key: String, atMost count: Int) throws -> [(key: String, user: User)] {
    try sql.rows("SELECT * FROM users WHERE name_key > ? ORDER BY name_key LIMIT ?", [.text(key), .integer(count)])
      .map { (try $0.text("name_key"), try Self.user($0)) }
  }

  func datePolicy(_ word: String?, at now: Timestamp) throws -> Timestamp? {
    try sql.run("DELETE FROM obligations WHERE word <> ?", [.text(word ?? "")])
    guard let word else { return nil }
    try sql.run(
      """
      INSERT INTO obligations (word, since) VALUES (?, ?)
      ON CONFLICT (word) DO UPDATE SET since = excluded.since WHERE obligations.since > excluded.since
      """,
      // If an earlier start had a clock that ran ahead, this start corrects the date.
      [.text(word), .time(now)])
    return try sql.rows("SELECT since FROM obligations WHERE word = ?", [.text(word)]).first?.time("since")
  }

  /// Updates the keys of all names to the current rule of `Username`. If two accounts now have the same key, the
  /// account that already has it keeps it, otherwise the first one. The other account keeps its old key, and
  /// `user(named:)` still finds it. A key that is too long for an index also stays. Attempt limits move with their
  /// account.
  func renewNameKeys() throws {
    var last = ""
    while true {
      let users = try sql.rows(
        "SELECT id, name_key, username FROM users WHERE name_key > ? ORDER BY name_key LIMIT 1000", [.text(last)])
      for row in users {
        let key = try Username(row.text("username")).key
        last = try row.text("name_key")
        // Compares bytes, because Swift strings are equal if they differ only in Unicode composition.
        guard Array(key.utf8) != Array(last.utf8), key.utf8.count <= Username.longestKey, try !isAccount(key) else {
          continue
        }
        try sql.run("UPDATE users SET name_key = ? WHERE id = ?", [.text(key), .text(row.text("id"))])
        try sql.run("UPDATE brakes SET account = ? WHERE account = ?", [.text(key), .text(last)])
      }
      if users.count < 1000 { return }
    }
  }

  static func user(_ row: SQLRow) throws -> User {
    User(
      id: try row.uuid("id"), username: try Username(kept: row.text("username"), key: row.text("name_key")),
      createdAt: try row.time("created_at"),
      lockedAt: try row.optional("locked_at", row.time), isAdmin: try row.truth("admin"),
      adminSince: try row.optional("admin_since", row.time), language: try row.optional("language", row.text))
  }
}
