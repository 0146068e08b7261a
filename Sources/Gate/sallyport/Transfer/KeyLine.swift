internal import AndroidKeyAttestation
internal import AppAttest
internal import AttestGate
internal import ByteCoding
internal import Cryptography

/// The format of an export (JSON Lines): a header, one line per key in key id order, and a trailer.
enum ExportFormat {
  static let name = "sallyport-keys"
  static let version = 1
}

struct HeaderLine: Codable {
  let format: String
  let version: Int
  /// The location of the exported store, without user and password.
  let store: String
  let exportedAt: String
  /// The number of keys when the export began.
  let count: Int

  enum CodingKeys: String, CodingKey {
    case format, version, store, count
    case exportedAt = "exported_at"
  }
}

struct TrailerLine: Codable {
  /// The start of every trailer. Members are sorted by name, and no key line starts with `count`.
  static let beginning = Array(#"{"count":"#.utf8)

  /// The number of key lines.
  let count: Int
  /// The SHA-256 of all earlier lines, including line ends, in hex.
  let sha256: String
}

/// One key with everything that a store holds about it.
struct KeyLine: Codable {
  let keyID: String
  let publicKey: String
  let app: String
  let environment: String
  let category: UInt32?
  let bundleVersion: String?
  /// `AttestedAndroidKey.evidenceText`; absent for a key of iOS.
  let android: String?
  let counter: UInt32
  /// A 64-bit bitmap in hex, since JSON numbers do not hold 64 bits exactly.
  let usedCounters: String
  let registrationNonce: String
  let attestationDigest: String
  let registeredAt: String
  let lastUsedAt: String?
  let revokedAt: String?
  let receipt: String
  /// The risk metric and the time of its receipt; absent for a key without one, as in older exports.
  let risk: Int?
  let riskAt: String?
  /// Present and true if the metric is outdated; see `StoredRisk`.
  let isRiskOutdated: Bool?

  enum CodingKeys: String, CodingKey {
    case app, environment, category, android, counter, receipt, risk
    case keyID = "key_id"
    case publicKey = "public_key"
    case bundleVersion = "bundle_version"
    case usedCounters = "used_counters"
    case registrationNonce = "registration_nonce"
    case attestationDigest = "attestation_digest"
    case registeredAt = "registered_at"
    case lastUsedAt = "last_seen_at"
    case revokedAt = "revoked_at"
    case riskAt = "risk_at"
    case isRiskOutdated = "risk_outdated"
  }

  init(_ entry: KeyEntry) {
    let (record, key) = (entry.record, entry.record.key)
    keyID = key.keyID.base64
    publicKey = Base64.encode(key.publicKey)
    app = key.app.text
    environment = key.environment.rawValue
    category = key.validationCategory?.rawValue
    bundleVersion = key.bundleVersion
    android = key.androidEvidence
    counter = record.counter.value
    usedCounters = String(entry.usedCounters, radix: 16)
    registrationNonce = Hex.encode(record.request.nonce.bytes)
    attestationDigest = Hex.encode(record.request.attestationDigest.bytes)
    registeredAt = record.registeredAt.description
    lastUsedAt = record.lastUsedAt?.description
    revokedAt = record.revokedAt?.description
    receipt = Base64.encode(entry.receipt)
    risk = record.risk?.newest.metric
    riskAt = record.risk?.newest.at.description
    isRiskOutdated = record.risk?.isOutdated == true ? true : nil
  }

  /// Decodes the entry.
  ///
  /// - Throws: `MalformedMember` with the name of the invalid member.
  func entry() throws(MalformedMember) -> KeyEntry {
    let key = try deviceKey()
    let request = RegistrationRequest(
      nonce: try read(registrationNonce, "registration_nonce") { Hex.decode($0).flatMap(Nonce.init(bytes:)) },
      attestationDigest: try read(attestationDigest, "attestation_digest") {
        Hex.decode($0).flatMap(AttestationDigest.init(bytes:))
      })
    let record = KeyRecord(
      key: key, request: request, registeredAt: try read(registeredAt, "registered_at", Self.instant),
      counter: SignCount(counter), lastUsedAt: try readIfPresent(lastUsedAt, "last_seen_at"),
      revokedAt: try readIfPresent(revokedAt, "revoked_at"), risk: try storedRisk())
    return KeyEntry(
      record: record, usedCounters: try read(usedCounters, "used_counters") { UInt64($0, radix: 16) },
      receipt: try read(receipt, "receipt") { Base64.decode($0) })
  }

  private func storedRisk() throws(MalformedMember) -> StoredRisk? {
    guard let metric = risk else {
      guard riskAt == nil, isRiskOutdated == nil else { throw MalformedMember(name: "risk") }
      return nil
    }
    guard metric >= 0 else { throw MalformedMember(name: "risk") }
    guard let riskAt, !receipt.isEmpty else { throw MalformedMember(name: "risk_at") }
    return StoredRisk(
      KeyRisk(metric: metric, at: try read(riskAt, "risk_at", Self.instant)), isOutdated: isRiskOutdated ?? false)
  }

  private func deviceKey() throws(MalformedMember) -> DeviceKey {
    let keyID = try read(keyID, "key_id") { KeyID(base64: $0) }
    // The key id is the SHA-256 of the public key. A line therefore cannot bring a different key under a registered
    // id.
    let publicKey = try read(publicKey, "public_key") { text in
      Base64.decode(text).flatMap { $0.count == 65 && SHA256.hash($0) == keyID.bytes ? $0 : nil }
    }
    let environment = try read(environment, "environment", AttestEnvironment.init(rawValue:))
    if let android {
      let key = try read(android, "android") {
        AttestedAndroidKey(publicKey: publicKey, package: app, evidenceText: $0)
      }
      return DeviceKey(key, keyID: keyID, environment: environment)
    }
    return DeviceKey(
      AttestedKey(
        keyID: keyID, publicKey: publicKey, appID: try read(app, "app") { AppID($0) }, environment: environment,
        validationCategory: category.map(ValidationCategory.init(rawValue:)), bundleVersion: bundleVersion))
  }

  private func read<Value>(
    _ text: String, _ name: String, _ parse: (String) -> Value?
  ) throws(MalformedMember) -> Value {
    guard let value = parse(text) else { throw MalformedMember(name: name) }
    return value
  }

  private func readIfPresent(_ text: String?, _ name: String) throws(MalformedMember) -> Timestamp? {
    guard let text else { return nil }
    return try read(text, name, Self.instant)
  }

  /// Parses a time with at most millisecond precision, as stores keep it.
  private static func instant(_ text: String) -> Timestamp? {
    Timestamp(rfc3339: text).flatMap { $0.nanoseconds % 1_000_000 == 0 ? $0 : nil }
  }
}

struct MalformedMember: Error {
  let name: String
}
