internal import ByteCoding
internal import Foundation
internal import MFADomain

extension SQLRecords: DeviceRecords {
  func device(_ id: DeviceID) throws -> Device? {
    try sql.rows("SELECT * FROM devices WHERE id = ?", [.text(id.text)]).first.map(Self.device)
  }

  func devices(of userID: UUID) throws -> [Device] {
    try sql.rows(
      "SELECT * FROM devices WHERE user_id = ? AND removed_at IS NULL ORDER BY enrolled_at, id", [.uuid(userID)]
    ).map(Self.device)
  }

  // A device never changes its user, so the update does not set `user_id`.
  func save(_ device: Device) throws {
    try sql.run(
      """
      INSERT INTO devices (id, user_id, model, method, auth_method, public_key, phone_number, binding, enrolled_at,
        last_used, removed_at)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT (id) DO UPDATE SET model = excluded.model, method = excluded.method,
        auth_method = excluded.auth_method, public_key = excluded.public_key, phone_number = excluded.phone_number,
        binding = excluded.binding, enrolled_at = excluded.enrolled_at, last_used = excluded.last_used,
        removed_at = excluded.removed_at
      """,
      [
        .text(device.id.text), .uuid(device.userID), .text(device.model.text), .text(device.method.rawValue),
        .text(device.authMethod?.rawValue), .blob(device.publicKey?.point), .blob(device.phoneNumber?.bytes),
        .binding(device.binding), .time(device.enrolledAt), .time(device.lastUsed), .time(device.removedAt),
      ])
  }

  private static func device(_ row: SQLRow) throws -> Device {
    Device(
      id: try DeviceID(row.text("id")), userID: try row.uuid("user_id"),
      model: try DeviceModel(kept: row.text("model")), method: try row.word("method"),
      authMethod: try row.optional("auth_method") { try row.word($0) },
      publicKey: try row.optional("public_key") { try DevicePublicKey(bytes: row.blob($0)) },
      phoneNumber: try row.optional("phone_number", row.blob).map { Sealed(bytes: $0) },
      binding: try row.binding("binding"), enrolledAt: try row.time("enrolled_at"),
      lastUsed: try row.optional("last_used", row.time), removedAt: try row.optional("removed_at", row.time))
  }
}
