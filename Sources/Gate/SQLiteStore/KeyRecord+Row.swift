internal import AndroidKeyAttestation
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
        key: try DeviceKey(row: row),
        request: RegistrationRequest(
          nonce: try row.read("registration_nonce") { Nonce(bytes: Array($0 as Data)) },
          attestationDigest: try row.read("attestation_digest") { AttestationDigest(bytes: Array($0 as Data)) }),
        registeredAt: try row.read("registered_at", Timestamp.init(milliseconds:)),
        counter: try row.read("counter", SignCount.init),
        lastUsedAt: try row.readIfPresent("last_seen_at", Timestamp.init(milliseconds:)),
        revokedAt: try row.readIfPresent("revoked_at", Timestamp.init(milliseconds:)),
        risk: try StoredRisk(row: row))
    } catch {
      throw StoreError.corrupt(reason: "attested_keys.\(error.name) is malformed")
    }
  }
}

extension StoredRisk {
  /// Returns `nil` for a key without a metric. Rows of copies have no counted one.
  fileprivate init?(row: Row) throws(MalformedColumn) {
    if row.hasColumn("counted"), let count = try row.readIfPresent("counted", { $0 as Int }) {
      self.init(KeyRisk(metric: count, at: try row.read("counted_at", Timestamp.init(milliseconds:))))
      return
    }
    // A backup that an older version wrote has no such column.
    guard row.hasColumn("risk") else { return nil }
    guard let metric = try row.readIfPresent("risk", { $0 as Int }) else { return nil }
    self.init(
      KeyRisk(metric: metric, at: try row.read("risk_at", Timestamp.init(milliseconds:))),
      isOutdated: try row.read("risk_outdated") { $0 })
  }
}

extension DeviceKey {
  fileprivate init(row: Row) throws(MalformedColumn) {
    let keyID = try row.read("key_id") { KeyID(bytes: Array($0 as Data)) }
    let publicKey = try row.read("public_key") { Array($0 as Data) }
    let environment = try row.read("environment", AttestEnvironment.init(rawValue:))
    let package = try row.read("app_id") { $0 as String }
    // A backup that an older version wrote has no such column.
    let android =
      row.hasColumn("android")
      ? try row.readIfPresent("android") { (text: String) in
        AttestedAndroidKey(publicKey: publicKey, package: package, evidenceText: text)
      } : nil
    if let android {
      self.init(android, keyID: keyID, environment: environment)
      return
    }
    self.init(
      AttestedKey(
        keyID: keyID, publicKey: publicKey, appID: try row.read("app_id") { AppID($0) }, environment: environment,
        validationCategory: try row.readIfPresent("category", ValidationCategory.init(rawValue:)),
        bundleVersion: try row.readIfPresent("bundle_version") { $0 }))
  }
}
