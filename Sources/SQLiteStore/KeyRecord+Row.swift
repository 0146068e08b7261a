internal import AppAttest
internal import AttestGate
internal import ByteCoding
internal import Foundation
internal import GRDB

extension KeyRecord {
  /// The record that `row` of `attested_keys` holds.
  init(row: Row) throws {
    guard let key = AttestedKey(row: row),
      let nonce = row.bytes("registration_nonce").flatMap(Nonce.init(bytes:)),
      let digest = row.bytes("attestation_digest").flatMap(AttestationDigest.init(bytes:)),
      let counter = row.value("counter", as: UInt32.self),
      let registeredAt = row.timestamp("registered_at")
    else { throw StoreError.corrupt(reason: "a row of attested_keys is malformed") }
    self.init(
      key: key, request: RegistrationRequest(nonce: nonce, attestationDigest: digest), registeredAt: registeredAt,
      counter: SignCount(counter), lastSeenAt: row.timestamp("last_seen_at"), revokedAt: row.timestamp("revoked_at"))
  }
}

extension AttestedKey {
  fileprivate init?(row: Row) {
    guard let keyID = row.bytes("key_id").flatMap(KeyID.init(bytes:)), let publicKey = row.bytes("public_key"),
      let appID = row.value("app_id", as: String.self).flatMap(AppID.init),
      let environment = row.value("environment", as: String.self).flatMap(AttestEnvironment.init(rawValue:))
    else { return nil }
    self.init(
      keyID: keyID, publicKey: publicKey, appID: appID, environment: environment,
      validationCategory: row.value("category", as: UInt32.self).map(ValidationCategory.init(rawValue:)),
      bundleVersion: row.value("bundle_version", as: String.self))
  }
}

// GRDB's own subscripts end the process when a value has another type than expected, as it may in a damaged file.
extension Row {
  /// `nil` for NULL and for a value of another type.
  func value<Value: DatabaseValueConvertible>(_ column: String, as type: Value.Type) -> Value? {
    Value.fromDatabaseValue(self[column])
  }

  func bytes(_ column: String) -> [UInt8]? { value(column, as: Data.self).map { Array($0) } }

  func timestamp(_ column: String) -> Timestamp? {
    value(column, as: Int64.self).map(Timestamp.init(milliseconds:))
  }
}
