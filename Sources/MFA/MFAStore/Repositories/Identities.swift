internal import ByteCoding
internal import MFADomain

extension SQLRecords: IdentityRecords {
  func spend(identity id: String, until end: Timestamp) throws -> Bool {
    try sql.run(
      "INSERT INTO gate_identities (id, expires_at) VALUES (?, ?) ON CONFLICT (id) DO NOTHING", [.text(id), .time(end)]
    ) == 1
  }

  func removeIdentities(expiredBefore instant: Timestamp, atMost count: Int) throws -> Int {
    try remove(count, of: "gate_identities", by: "id", where: "expires_at < ?", [.time(instant)])
  }
}
