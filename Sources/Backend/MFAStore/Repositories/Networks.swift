internal import ByteCoding
internal import Foundation
internal import MFADomain

extension SQLRecords: NetworkRecords {
  func isKnown(network: String, of userID: UUID, by binding: Binding?) throws -> Bool {
    let condition = binding == nil ? "" : " AND binding = ?"
    return try !sql.rows(
      "SELECT 1 AS found FROM networks WHERE user_id = ? AND network = ?\(condition) LIMIT 1",
      [.uuid(userID), .text(network)] + (binding.map { [.binding($0)] } ?? [])
    ).isEmpty
  }

  func saw(network: String, of userID: UUID, by binding: Binding, at now: Timestamp) throws {
    try sql.run(
      """
      INSERT INTO networks (user_id, binding, network, last_seen_at) VALUES (?, ?, ?, ?)
      ON CONFLICT (user_id, binding, network) DO UPDATE SET last_seen_at = excluded.last_seen_at
      """,
      [.uuid(userID), .binding(binding), .text(network), .time(now)])
  }

  func removeNetworks(of userID: UUID) throws {
    try sql.run("DELETE FROM networks WHERE user_id = ?", [.uuid(userID)])
  }

  func removeNetworks(unseenSince instant: Timestamp, atMost count: Int) throws -> Int {
    try remove(count, of: "networks", by: "user_id, binding, network", where: "last_seen_at < ?", [.time(instant)])
  }
}
