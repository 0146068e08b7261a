internal import ByteCoding
internal import Foundation
internal import MFADomain

extension SQLRecords: PushAddressRecords {
  func save(_ address: PushAddress) throws {
    try sql.run(
      "DELETE FROM push_addresses WHERE token_hash = ? AND device_id <> ?",
      [.blob(address.tokenHash), .text(address.deviceID.text)])
    try sql.run(
      """
      INSERT INTO push_addresses (device_id, user_id, service, app, production, token, token_hash, language,
        registered_at)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT (device_id) DO UPDATE SET user_id = excluded.user_id, service = excluded.service, app = excluded.app,
        production = excluded.production, token = excluded.token, token_hash = excluded.token_hash,
        language = excluded.language, registered_at = excluded.registered_at
      """,
      [
        .text(address.deviceID.text), .uuid(address.userID), .text(address.service.rawValue), .text(address.app),
        .integer(address.isProduction ? 1 : 0), .blob(address.token.bytes), .blob(address.tokenHash),
        .text(address.language), .time(address.registeredAt),
      ])
  }

  func pushAddress(tokenHash: [UInt8]) throws -> PushAddress? {
    try sql.rows("SELECT * FROM push_addresses WHERE token_hash = ?", [.blob(tokenHash)]).first.map(Self.pushAddress)
  }

  func pushAddress(of deviceID: DeviceID) throws -> PushAddress? {
    try sql.rows("SELECT * FROM push_addresses WHERE device_id = ?", [.text(deviceID.text)]).first
      .map(Self.pushAddress)
  }

  func pushAddresses(of userID: UUID) throws -> [PushAddress] {
    try sql.rows("SELECT * FROM push_addresses WHERE user_id = ? ORDER BY device_id", [.uuid(userID)])
      .map(Self.pushAddress)
  }

  func removePushAddress(of deviceID: DeviceID) throws -> Bool {
    try sql.run("DELETE FROM push_addresses WHERE device_id = ?", [.text(deviceID.text)]) > 0
  }

  func removePushAddresses(of userID: UUID) throws -> Int {
    try sql.run("DELETE FROM push_addresses WHERE user_id = ?", [.uuid(userID)])
  }

  private static func pushAddress(_ row: SQLRow) throws -> PushAddress {
    PushAddress(
      deviceID: try DeviceID(row.text("device_id")), userID: try row.uuid("user_id"), service: try row.word("service"),
      app: try row.text("app"), isProduction: try row.int("production") == 1,
      token: Sealed(bytes: try row.blob("token")), tokenHash: try row.blob("token_hash"),
      language: try row.optional("language", row.text), registeredAt: try row.time("registered_at"))
  }
}
