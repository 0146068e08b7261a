internal import AppAttest
internal import AttestGate
internal import ByteCoding
internal import Cryptography

/// The lines of an export: a header, a line for each key in the order of the ids, a trailer (JSON Lines).
enum ExportFormat {
  static let name = "sallyport-keys"
  static let version = 1
}

struct HeaderLine: Codable {
  let format: String
  let version: Int
  /// Where the keys are from, without user and password.
  let store: String
  let exportedAt: String
  /// How many there were when the export began.
  let count: Int

  enum CodingKeys: String, CodingKey {
    case format, version, store, count
    case exportedAt = "exported_at"
  }
}

struct TrailerLine: Codable {
  /// Names stand in the order of the alphabet, and no key's line begins with this one.
  static let beginning = Array(#"{"count":"#.utf8)

  /// How many lines of keys there are.
  let count: Int
  /// Of all lines before this one, line ends included, in hex.
  let sha256: String
}

/// All that is stored about a key.
struct KeyLine: Codable {
  let keyID: String
  let publicKey: String
  let app: String
  let environment: String
  let category: UInt32?
  let bundleVersion: String?
  let counter: UInt32
  /// 64 bits in hex: more than a number of JSON holds.
  let usedCounters: String
  let registrationNonce: String
  let attestationDigest: String
  let registeredAt: String
  let lastSeenAt: String?
  let revokedAt: String?
  let receipt: String

  enum CodingKeys: String, CodingKey {
    case app, environment, category, counter, receipt
    case keyID = "key_id"
    case publicKey = "public_key"
    case bundleVersion = "bundle_version"
    case usedCounters = "used_counters"
    case registrationNonce = "registration_nonce"
    case attestationDigest = "attestation_digest"
    case registeredAt = "registered_at"
    case lastSeenAt = "last_seen_at"
    case revokedAt = "revoked_at"
  }

  init(_ entry: KeyEntry) {
    let (record, key) = (entry.record, entry.record.key)
    keyID = key.keyID.base64
    publicKey = Base64.encode(key.publicKey)
    app = key.appID.text
    environment = key.environment.rawValue
    category = key.validationCategory?.rawValue
    bundleVersion = key.bundleVersion
    counter = record.counter.value
    usedCounters = String(entry.usedCounters, radix: 16)
    registrationNonce = Hex.encode(record.request.nonce.bytes)
    attestationDigest = Hex.encode(record.request.attestationDigest.bytes)
    registeredAt = record.registeredAt.description
    lastSeenAt = record.lastSeenAt?.description
    revokedAt = record.revokedAt?.description
    receipt = Base64.encode(entry.receipt)
  }

  /// The entry, or the name of the member that is malformed.
  func entry() throws(MalformedMember) -> KeyEntry {
    let key = try attestedKey()
    let request = RegistrationRequest(
      nonce: try read(registrationNonce, "registration_nonce") { Hex.decode($0).flatMap(Nonce.init(bytes:)) },
      attestationDigest: try read(attestationDigest, "attestation_digest") {
        Hex.decode($0).flatMap(AttestationDigest.init(bytes:))
      })
    let record = KeyRecord(
      key: key, request: request, registeredAt: try read(registeredAt, "registered_at", Self.instant),
      counter: SignCount(counter), lastSeenAt: try readIfPresent(lastSeenAt, "last_seen_at"),
      revokedAt: try readIfPresent(revokedAt, "revoked_at"))
    return KeyEntry(
      record: record, usedCounters: try read(usedCounters, "used_counters") { UInt64($0, radix: 16) },
      receipt: try read(receipt, "receipt") { Base64.decode($0) })
  }

  private func attestedKey() throws(MalformedMember) -> AttestedKey {
    let keyID = try read(keyID, "key_id") { KeyID(base64: $0) }
    // Apple's key id is the hash of the key: so a line cannot bring another key under the id of one that is registered.
    let publicKey = try read(publicKey, "public_key") { text in
      Base64.decode(text).flatMap { $0.count == 65 && SHA256.hash($0) == keyID.bytes ? $0 : nil }
    }
    return AttestedKey(
      keyID: keyID, publicKey: publicKey, appID: try read(app, "app") { AppID($0) },
      environment: try read(environment, "environment", AttestEnvironment.init(rawValue:)),
      validationCategory: category.map(ValidationCategory.init(rawValue:)), bundleVersion: bundleVersion)
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

  /// Stores keep milliseconds.
  private static func instant(_ text: String) -> Timestamp? {
    Timestamp(rfc3339: text).flatMap { $0.nanoseconds % 1_000_000 == 0 ? $0 : nil }
  }
}

struct MalformedMember: Error {
  let name: String
}
