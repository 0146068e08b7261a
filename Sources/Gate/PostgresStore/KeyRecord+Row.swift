internal import AppAttest
internal import AttestGate
internal import ByteCoding
internal import Postgres

extension KeyRecord {
  /// Reads the record from a row of `attested_keys`.
  ///
  /// - Throws: `.corrupt` if a value has a type or form that this target does not write.
  init(row: ResultRow) throws(StoreError) {
    do throws(MalformedColumn) {
      self.init(
        key: try AttestedKey(row: row),
        request: RegistrationRequest(
          nonce: try row.read("registration_nonce", Nonce.init(bytes:)),
          attestationDigest: try row.read("attestation_digest", AttestationDigest.init(bytes:))),
        registeredAt: try row.read("registered_at", Timestamp.init(milliseconds:)),
        counter: try row.read("counter", SignCount.init(stored:)),
        lastUsedAt: try row.readIfPresent("last_seen_at", Timestamp.init(milliseconds:)),
        revokedAt: try row.readIfPresent("revoked_at", Timestamp.init(milliseconds:)))
    } catch {
      throw .corrupt(reason: "attested_keys.\(error.name) is malformed")
    }
  }
}

extension KeyRecord {
  static func all(in answer: QueryResult) throws(StoreError) -> [KeyRecord] {
    var records: [KeyRecord] = []
    for row in answer.rows { records.append(try KeyRecord(row: row)) }
    return records
  }
}

extension AttestedKey {
  fileprivate init(row: ResultRow) throws(MalformedColumn) {
    self.init(
      keyID: try row.read("key_id", KeyID.init(bytes:)),
      publicKey: try row.read("public_key") { $0 },
      appID: try row.read("app_id") { AppID($0 as String) },
      environment: try row.read("environment", AttestEnvironment.init(rawValue:)),
      validationCategory: try row.readIfPresent("category") { (number: Int64) in
        UInt32(exactly: number).flatMap(ValidationCategory.init(rawValue:))
      },
      bundleVersion: try row.readIfPresent("bundle_version") { $0 })
  }
}

extension SignCount {
  /// Returns `nil` unless `number` fits into the 32 bits of a counter.
  init?(stored number: Int64) {
    guard let value = UInt32(exactly: number) else { return nil }
    self.init(value)
  }
}
