public import AppAttest
public import ByteCoding
internal import Cryptography

/// Stores the attested keys, their counters and the spent nonces: the state that the gate must never lose.
///
/// Every call is one transaction, and its effects are durable before it returns. Calls may come from any number of
/// tasks and, with a shared store, from several nodes. The guarantees of `Insertion` and `Admittance` cover all of
/// them.
public protocol KeyRegistry: Sendable {
  /// Spends the nonce of `registration` and inserts its key, or does neither. Results other than `.inserted` change
  /// nothing.
  func register(_ registration: Registration) async throws(StoreError) -> Insertion

  /// Returns the record of a key; `nil` if it is not registered.
  func record(of keyID: KeyID) async throws(StoreError) -> KeyRecord?

  /// Returns the newest receipt of a key (CMS): that of its registration, or one that replaced it. `nil` if the key is
  /// not registered or has none.
  func receipt(of keyID: KeyID) async throws(StoreError) -> [UInt8]?

  /// Spends `use.nonce`, advances the counter if the key has one, and checks that the key is not revoked, all or nothing. Results other
  /// than `.admitted` change nothing.
  func admit(_ use: KeyUse) async throws(StoreError) -> Admittance

  /// Revokes a key: every later admission fails. Returns `false` if the key is not registered. A second revocation
  /// keeps the first date.
  func revoke(_ keyID: KeyID, at now: Timestamp) async throws(StoreError) -> Bool

  /// Cancels a revocation. Returns `false` if the key is not registered.
  func restore(_ keyID: KeyID) async throws(StoreError) -> Bool

  /// Deletes the spent nonces that were issued at or before `instant`. They stay refused forever, whatever the clock
  /// reports later, and so does every nonce that was not issued later than the newest of them.
  func forgetNonces(issuedBy instant: Timestamp) async throws(StoreError)
}

/// A verified key that is to be registered.
public struct Registration: Sendable, Hashable {
  public let key: DeviceKey
  /// The receipt as the device sent it (CMS); empty for a key without one, as on Android.
  public let receipt: [UInt8]
  public let request: RegistrationRequest
  /// The time of the registration, stored with millisecond precision.
  public let registeredAt: Timestamp

  public init(key: DeviceKey, receipt: [UInt8] = [], request: RegistrationRequest, registeredAt: Timestamp) {
    self.key = key
    self.receipt = receipt
    self.request = request
    self.registeredAt = registeredAt
  }
}

/// Identifies a registration request by its nonce and attestation, so that a repetition is recognized.
public struct RegistrationRequest: Sendable, Hashable {
  public let nonce: Nonce
  public let attestationDigest: AttestationDigest

  public init(nonce: Nonce, attestationDigest: AttestationDigest) {
    self.nonce = nonce
    self.attestationDigest = attestationDigest
  }
}

/// The SHA-256 of an attestation object, 32 bytes.
public struct AttestationDigest: Sendable, Hashable {
  public let bytes: [UInt8]

  /// Returns `nil` unless there are exactly 32 bytes.
  public init?(bytes: [UInt8]) {
    guard bytes.count == SHA256.digestSize else { return nil }
    self.bytes = bytes
  }

  /// Computes the digest of `attestation`.
  public init(of attestation: [UInt8]) { bytes = SHA256.hash(attestation) }
}

/// The result of a registration. If several race with the same nonce or the same key, exactly one gets `.inserted`.
public enum Insertion: Sendable, Hashable {
  case inserted
  /// The same request registered the key before, and the key is not revoked.
  case sameRequest
  /// The same request registered the key before, and the key has been revoked since.
  case revoked
  /// The nonce was already used, for a registration or for an admission.
  case nonceSpent
  /// Another request registered the key before.
  case keyExists
}

/// A verified proof that is to be admitted.
public struct KeyUse: Sendable, Hashable {
  public let keyID: KeyID
  /// The counter of an assertion; `nil` for a key of Android, which has none. A key with a counter is never admitted
  /// without one.
  public let counter: SignCount?
  public let nonce: Nonce
  public let window: CounterWindow
  public let at: Timestamp

  public init(keyID: KeyID, counter: SignCount?, nonce: Nonce, window: CounterWindow, at: Timestamp) {
    self.keyID = keyID
    self.counter = counter
    self.nonce = nonce
    self.window = window
    self.at = at
  }
}

/// The result of an admission. If several race with the same nonce, or with the same counter of one key, at most one
/// gets `.admitted`.
public enum Admittance: Sendable, Hashable {
  case admitted
  case nonceSpent
  /// The counter is not greater than `stored`, and not an unused counter within the window.
  case counterReplayed(stored: SignCount)
  case revoked
  /// The key is not registered; it may have been removed after the lookup.
  case unknownKey
}

/// The distance below the greatest counter within which an unused counter is still accepted, once each.
///
/// It serves devices that open several sockets at the same time, whose assertions may arrive out of order. With 0,
/// each counter must be greater than the last. Counters that left the window count as used, even if the window is
/// enlarged later.
public struct CounterWindow: Sendable, Hashable {
  public static let largest = 63
  public static let none = CounterWindow(unchecked: 0)

  public let size: Int

  /// Returns `nil` unless `size` is 0 to 63.
  public init?(_ size: Int) {
    guard (0...Self.largest).contains(size) else { return nil }
    self.init(unchecked: size)
  }

  private init(unchecked size: Int) { self.size = size }
}

/// The stored state of a key.
public struct KeyRecord: Sendable, Hashable {
  public let key: DeviceKey
  /// The request that registered the key.
  public let request: RegistrationRequest
  public let registeredAt: Timestamp
  /// The greatest admitted counter; 0 before the first admission.
  public let counter: SignCount
  /// The time of the last admission. Columns and export lines call it `last_seen_at`, because older gates read them.
  public let lastUsedAt: Timestamp?
  public let revokedAt: Timestamp?
  /// The risk metric; `nil` if none was ever reported.
  public let risk: StoredRisk?

  public init(
    key: DeviceKey, request: RegistrationRequest, registeredAt: Timestamp, counter: SignCount,
    lastUsedAt: Timestamp?, revokedAt: Timestamp?, risk: StoredRisk? = nil
  ) {
    self.key = key
    self.request = request
    self.registeredAt = registeredAt
    self.counter = counter
    self.lastUsedAt = lastUsedAt
    self.revokedAt = revokedAt
    self.risk = risk
  }
}
