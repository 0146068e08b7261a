internal import AndroidKeyAttestation
internal import AppAttest
internal import AttestGate
internal import ByteCoding
internal import Databases

extension KeyRecord {
  /// Reads the record from a row of `attested_keys`.
  ///
  /// - Throws: `.corrupt` if a value has a type or form that this target does not write.
  init(row: ResultRow) throws(StoreError) {
    do throws(MalformedColumn) {
      self.init(
        key: try DeviceKey(row: row),
        request: RegistrationRequest(
          nonce: try row.read("registration_nonce", Nonce.init(bytes:)),
          attestationDigest: try row.read("attestation_digest", AttestationDigest.init(bytes:))),
        registeredAt: try row.read("registered_at", Timestamp.init(milliseconds:)),
        counter: try row.read("counter", SignCount.init(stored:)),
        lastUsedAt: try row.readIfPresent("last_seen_at", Timestamp.init(milliseconds:)),
        revokedAt: try row.readIfPresent("revoked_at", Timestamp.init(milliseconds:)),
        risk: try StoredRisk(row: row))
    } catch {
      throw .corrupt(reason: "attested_keys.\(error.name) is malformed")
    }
  }
}

extension StoredRisk {
  /// Returns `nil` for a key without a metric.
  fileprivate init?(row: ResultRow) throws(MalformedColumn) {
    guard let metric = try row.readIfPresent("risk", { Int($0 as Int64) }) else { return nil }
    self.init(
      KeyRisk(metric: metric, at: try row.read("risk_at", Timestamp.init(milliseconds:))),
      isOutdated: try row.read("risk_outdated") { $0 })
  }
}

extension KeyRecord {
  /// The columns that a record needs in addition to those of a key `k`, from `tables(of:)`. The metric is Apple's, or the
  /// one that `AttestationKeyStatements` counts.
  static let columns = """
    k.*, a.evidence AS android, COALESCE(e.metric, c.metric) AS risk,
    COALESCE(e.measured_at, c.measured_at) AS risk_at, e.due_at IS NULL AND c.metric IS NULL AS risk_outdated
    """

  /// As `columns`, without counted metrics, from `storedTables(of:)`: copies have what is stored.
  static let storedColumns = """
    k.*, a.evidence AS android, e.metric AS risk, e.measured_at AS risk_at, e.due_at IS NULL AS risk_outdated
    """

  /// The tables of `columns`, for the rows of `attested_keys AS k` that `selection` names: its WHERE, ORDER BY and LIMIT.
  static func tables(of selection: String) -> String {
    "\(storedTables(of: selection)) LEFT JOIN LATERAL (\(AttestationKeyStatements.counts)) AS c ON TRUE"
  }

  // The keys are selected first, and OFFSET 0 keeps the planner from joining the tables as a whole: it would read them
  // from their beginning up to the key.
  static func storedTables(of selection: String) -> String {
    """
    (SELECT * FROM attested_keys AS k \(selection)) AS k
      LEFT JOIN LATERAL (SELECT evidence FROM android_keys WHERE key_id = k.key_id OFFSET 0) AS a ON TRUE
      LEFT JOIN LATERAL (
        SELECT metric, measured_at, due_at FROM receipt_exchanges WHERE key_id = k.key_id OFFSET 0
      ) AS e ON TRUE
    """
  }
}

extension DeviceKey {
  fileprivate init(row: ResultRow) throws(MalformedColumn) {
    let keyID = try row.read("key_id", KeyID.init(bytes:))
    let publicKey = try row.read("public_key") { $0 as [UInt8] }
    let environment = try row.read("environment", AttestEnvironment.init(rawValue:))
    let package = try row.read("app_id") { $0 as String }
    let android = try row.readIfPresent("android") { (text: String) in
      AttestedAndroidKey(publicKey: publicKey, package: package, evidenceText: text)
    }
    if let android {
      self.init(android, keyID: keyID, environment: environment)
      return
    }
    self.init(
      AttestedKey(
        keyID: keyID, publicKey: publicKey, appID: try row.read("app_id") { AppID($0 as String) },
        environment: environment,
        validationCategory: try row.readIfPresent("category") { (number: Int64) in
          UInt32(exactly: number).flatMap(ValidationCategory.init(rawValue:))
        },
        bundleVersion: try row.readIfPresent("bundle_version") { $0 }))
  }
}

extension SignCount {
  /// Returns `nil` unless `number` fits into the 32 bits of a counter.
  init?(stored number: Int64) {
    guard let value = UInt32(exactly: number) else { return nil }
    self.init(value)
  }
}
