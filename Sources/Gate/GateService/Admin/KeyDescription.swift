public import AttestGate
internal import AndroidKeyAttestation
internal import AppAttest
internal import ByteCoding

/// A key in a list. Timestamps are RFC 3339. Unknown values are absent.
public struct KeyDescription: Codable, Sendable, Hashable {
  /// The `KeyHash`, which names the key in logs and to upstreams.
  public let key: String
  /// `ios` or `android`.
  public let platform: String
  public let app: String
  public let environment: String
  /// `active` or `revoked`.
  public let state: String
  /// The highest admitted counter; 0 for a key of Android, which has none.
  public let counter: UInt32
  public let registeredAt: String
  public let lastUsedAt: String?
  public let revokedAt: String?
  /// The source of the app's installation, as iOS 27 and later report it.
  public let category: String?
  public let bundleVersion: String?
  /// Where a key of Android lives: `tee` or `strongbox`.
  public let securityLevel: String?
  /// The system of the Android device at its attestation: `verified` or `self_signed`.
  public let bootState: String?
  /// The month of the Android device's security patches at its attestation.
  public let patchLevel: String?
  /// How the attestation key came into the Android device: `factory`, `remote` or `unknown`.
  public let provisioning: String?
  /// The newest risk metric: Apple's on iOS, the number of keys of the device's attestation key on Android.
  public let risk: Int?
  /// The time of Apple's report, or of the newest key that is counted.
  public let riskAt: String?
  /// `true` if the metric is outdated, so that policies treat it as unknown; otherwise absent.
  public let isRiskOutdated: Bool?
  /// The base64 key id that the device uses. Present only if one key was requested.
  public var keyID: String?
  /// The public key in X9.62 form, base64. Present only if one key was requested.
  public var publicKey: String?
  /// The number of open sessions at this gate; absent if the store was read without a gate.
  public var sessions: Int?

  enum CodingKeys: String, CodingKey {
    case key, platform, app, environment, state, counter, category, sessions, provisioning, risk
    case riskAt = "risk_at"
    case isRiskOutdated = "risk_outdated"
    case registeredAt = "registered_at"
    case lastUsedAt = "last_used_at"
    case revokedAt = "revoked_at"
    case bundleVersion = "bundle_version"
    case securityLevel = "security_level"
    case bootState = "boot_state"
    case patchLevel = "patch_level"
    case keyID = "key_id"
    case publicKey = "public_key"
  }

  public init(_ record: KeyRecord) {
    key = KeyHash(of: record.key.keyID).text
    platform = record.key.platform.rawValue
    app = record.key.app.text
    environment = record.key.environment.rawValue
    state = record.revokedAt == nil ? "active" : "revoked"
    counter = record.counter.value
    registeredAt = record.registeredAt.description
    lastUsedAt = record.lastUsedAt?.description
    revokedAt = record.revokedAt?.description
    category = record.key.validationCategory?.name
    bundleVersion = record.key.bundleVersion
    let android: AttestedAndroidKey? =
      if case .android(let key) = record.key.attestation { key } else { nil }
    securityLevel = android?.securityLevel.word
    bootState = android?.bootState.word
    patchLevel = android?.patchLevel?.description
    provisioning = android?.provisioning.rawValue
    risk = record.risk?.newest.metric
    riskAt = record.risk?.newest.at.description
    isRiskOutdated = record.risk?.isOutdated == true ? true : nil
  }

  /// Creates a description with all details.
  public init(whole record: KeyRecord, sessions: Int?) {
    self.init(record)
    keyID = record.key.keyID.base64
    publicKey = Base64.encode(record.key.publicKey)
    self.sessions = sessions
  }
}

extension KeyDescription {
  /// The metric and whether it is outdated, as lists show it; `nil` without a metric: the key has no receipt, or no
  /// exchange has brought one yet.
  public var riskText: String? { risk.map { isRiskOutdated == true ? "\($0) outdated" : "\($0)" } }
}

/// A page of keys.
public struct KeyListing: Codable, Sendable, Hashable {
  public let keys: [KeyDescription]
  /// The hashes of keys in the range of the page that cannot be read; absent if there are none.
  public let unreadable: [String]?
  /// The `after` parameter of the next page; absent on the last page.
  public let next: String?

  init(keys: [KeyDescription], unreadable: [UnreadableKey], next: String?) {
    self.keys = keys
    self.unreadable = unreadable.isEmpty ? nil : unreadable.map { KeyHash(of: $0.keyID).text }
    self.next = next
  }
}

/// A removed key.
public struct KeyRemoval: Codable, Sendable, Hashable {
  public let key: String
  public let removed: Bool
}
