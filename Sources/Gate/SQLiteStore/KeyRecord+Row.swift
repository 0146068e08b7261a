internal import AppAttest
internal import AttestGate
internal import ByteCoding
internal import Foundation
internal import GRDB

extension KeyRecord {
  /// Reads the record from a row of `attested_keys`.
  ///
  /// - Throws: `StoreError.corrupt` if a value has a type or form that this target does not write.
  init(row: Row) throws {
    do throws(MalformedColumn) {
      self.init(
        key: try AttestedKey(row: row),
        request: RegistrationRequest(
          nonce: try row.read("registration_nonce") { Nonce(bytes: Array($0 as Data)) },
          attestationDigest: try row.read("attestation_digest") { AttestationDigest(bytes: Array($0 as Data)) }),
        registeredAt: try row.read("registered_at", Timestamp.init(milliseconds:)),
        counter: try row.read("counter", SignCount.init),
        lastUsedAt: try row.readIfPresent("last_seen_at", Timestamp.init(milliseconds:)),
        revokedAt: try row.readIfPresent("revoked_at", Timestamp.init(milliseconds:)))
    } catch {
      throw StoreError.corrupt(reason: "attested_keys.\(error.name) is malformed")
    }
  }
}

extension AttestedKey {
  fileprivate init(row: Row) throws(MalformedColumn) {
    self.init(
      keyID: try row.read("key_id") { KeyID(bytes: Array($0 as Data)) },
      publicKey: try row.read("public_key") { Array($0 as Data) },
      appID: try row.read("app_id") { AppID($0) },
      environment: try row.read("environment", AttestEnvironment.init(rawValue:)),
      validationCategory: try row.readIfPresent("category", ValidationCategory.init(rawValue:)),
      bundleVersion: try row.readIfPresent("bundle_version") { $0 })
  }
}
