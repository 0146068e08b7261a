internal import AppAttest
internal import AttestGate
internal import ByteCoding
internal import Cryptography
internal import Foundation
internal import GRDB

/// Problems in the tables. Reads all of them.
enum TableFindings {
  static func all(in db: Database) throws -> [StoreFinding] {
    var findings = try damage(in: db)
    db.add(function: hashOfKeyID)
    db.add(function: sha256)
    defer {
      db.remove(function: hashOfKeyID)
      db.remove(function: sha256)
    }
    for rule in rules {
      let count = try Int64.fetchOne(db, sql: "SELECT (\(rule.count))") ?? 0
      if let finding = rule.finding(broken: count) { findings.append(finding) }
    }
    return findings
  }

  private static func damage(in db: Database) throws -> [StoreFinding] {
    try String.fetchAll(db, sql: "PRAGMA integrity_check(10)").filter { $0 != "ok" }.map {
      StoreFinding(
        .problem, in: .data, "the file is damaged: \($0)",
        advice: "stop the gate, keep the file for analysis, and restore a backup: sallyport store restore FILE")
    }
  }

  private static let hashOfKeyID = DatabaseFunction("key_hash_of", argumentCount: 1, pure: true) { values in
    guard let bytes = Data.fromDatabaseValue(values[0]), let keyID = KeyID(bytes: Array(bytes)) else { return nil }
    return KeyHash(of: keyID).text
  }

  private static let sha256 = DatabaseFunction("sha256", argumentCount: 1, pure: true) { values in
    Data.fromDatabaseValue(values[0]).map { Data(SHA256.hash(Array($0))) }
  }

  private static let rules =
    [
      StoreRule(
        "SELECT COUNT(*) FROM pragma_foreign_key_check", "receipts or decisions without a key",
        advice: "\(StoreRule.restore); the keys themselves work"),
      StoreRule(
        """
        SELECT COUNT(*) FROM receipts AS r JOIN receipt_exchanges AS e ON e.key_id = r.key_id
        WHERE typeof(r.receipt) <> 'blob' OR typeof(e.failures) <> 'integer' OR typeof(e.registered_at) <> 'integer'
          OR typeof(e.due_at) NOT IN ('integer', 'null')
        """, "receipts whose rows cannot be read, and which are not exchanged",
        advice: "\(StoreRule.restore); the keys themselves work"),
    ]
    + StoreRule.all(
      hashOfID: "key_hash_of(key_id)", isAndroid: "k.android IS NOT NULL",
      now: "CAST(strftime('%s', 'now') AS INTEGER) * 1000")
}
