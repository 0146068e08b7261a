public import AttestGate
internal import AppAttest
internal import ByteCoding

/// A key in a list. Instants are RFC 3339; what is not known is absent.
public struct KeyDescription: Codable, Sendable, Hashable {
  /// `KeyHash`, the name that logs and upstreams know it by.
  public let key: String
  public let app: String
  public let environment: String
  /// `active` or `revoked`.
  public let state: String
  /// The greatest counter that was admitted.
  public let counter: UInt32
  public let registeredAt: String
  public let lastUsedAt: String?
  public let revokedAt: String?
  /// How the app was installed, as iOS 27 and later tell it.
  public let category: String?
  public let bundleVersion: String?
  /// The base64 by which the device knows the key; only of a key that was asked for by itself.
  public var keyID: String?
  /// X9.62, base64; only of a key that was asked for by itself.
  public var publicKey: String?
  /// Open sessions at this gate; absent where no gate was asked.
  public var sessions: Int?

  enum CodingKeys: String, CodingKey {
    case key, app, environment, state, counter, category, sessions
    case registeredAt = "registered_at"
    case lastUsedAt = "last_used_at"
    case revokedAt = "revoked_at"
    case bundleVersion = "bundle_version"
    case keyID = "key_id"
    case publicKey = "public_key"
  }

  public init(_ record: KeyRecord) {
    key = KeyHash(of: record.key.keyID).text
    app = record.key.appID.text
    environment = record.key.environment.rawValue
    state = record.revokedAt == nil ? "active" : "revoked"
    counter = record.counter.value
    registeredAt = record.registeredAt.description
    lastUsedAt = record.lastSeenAt?.description
    revokedAt = record.revokedAt?.description
    category = record.key.validationCategory?.name
    bundleVersion = record.key.bundleVersion
  }

  /// All that is known.
  public init(whole record: KeyRecord, sessions: Int?) {
    self.init(record)
    keyID = record.key.keyID.base64
    publicKey = Base64.encode(record.key.publicKey)
    self.sessions = sessions
  }
}

/// A page of keys.
public struct KeyListing: Codable, Sendable, Hashable {
  public let keys: [KeyDescription]
  /// The `after` of the next page; absent at the end.
  public let next: String?
}

/// A key that is gone.
public struct KeyRemoval: Codable, Sendable, Hashable {
  public let key: String
  public let removed: Bool
}
