public import AppAttest
public import ByteCoding
internal import Cryptography

/// The attested keys, their counters, and the nonces that have been spent: what the gate must never forget.
///
/// Every call is one transaction, and its effects are durable before it returns. Calls may come from any number of
/// tasks and, with a shared store, of nodes; what the cases of `Insertion` and `Admittance` promise holds between all
/// of them.
public protocol KeyRegistry: Sendable {
  /// Spends the nonce of `registration` and inserts its key: both or neither. Answers other than `.inserted` change
  /// nothing.
  func register(_ registration: Registration) async throws(StoreError) -> Insertion

  /// What is stored about a key; `nil` if it was never registered.
  func record(of keyID: KeyID) async throws(StoreError) -> KeyRecord?

  /// The receipt that came with a key's registration (CMS); `nil` if the key was never registered.
  func receipt(of keyID: KeyID) async throws(StoreError) -> [UInt8]?

  /// Spends `use.nonce`, advances the counter, and makes sure that the key is not revoked: all or nothing. Answers
  /// other than `.admitted` change nothing.
  func admit(_ use: KeyUse) async throws(StoreError) -> Admittance

  /// Makes every admission after this call fail. `false` if the key was never registered; revoking again keeps the
  /// first date.
  func revoke(_ keyID: KeyID, at now: Timestamp) async throws(StoreError) -> Bool

  /// Takes a revocation back. `false` if the key was never registered.
  func restore(_ keyID: KeyID) async throws(StoreError) -> Bool

  /// Forgets the spent nonces that were issued at or before `instant`. They stay refused for ever, whatever clocks say
  /// later, and so does each nonce that was issued no later than one of them.
  func forgetNonces(issuedBy instant: Timestamp) async throws(StoreError)
}

/// A verified key on its way into the registry.
public struct Registration: Sendable, Hashable {
  public let key: AttestedKey
  /// The receipt as the device sent it (CMS).
  public let receipt: [UInt8]
  public let request: RegistrationRequest
  /// Kept to the millisecond.
  public let registeredAt: Timestamp

  public init(key: AttestedKey, receipt: [UInt8], request: RegistrationRequest, registeredAt: Timestamp) {
    self.key = key
    self.receipt = receipt
    self.request = request
    self.registeredAt = registeredAt
  }
}

/// What tells the repetition of a registration from another one: its nonce and what it attested.
public struct RegistrationRequest: Sendable, Hashable {
  public let nonce: Nonce
  public let attestationDigest: AttestationDigest

  public init(nonce: Nonce, attestationDigest: AttestationDigest) {
    self.nonce = nonce
    self.attestationDigest = attestationDigest
  }
}

/// SHA-256 of an attestation object, 32 bytes.
public struct AttestationDigest: Sendable, Hashable {
  public let bytes: [UInt8]

  /// `nil` unless there are exactly 32 bytes.
  public init?(bytes: [UInt8]) {
    guard bytes.count == SHA256.digestSize else { return nil }
    self.bytes = bytes
  }

  /// The digest of `attestation`.
  public init(of attestation: [UInt8]) { bytes = SHA256.hash(attestation) }
}

/// What became of a registration. Of several at once with one nonce or one key, exactly one is `.inserted`.
public enum Insertion: Sendable, Hashable {
  case inserted
  /// The same key was registered before by the same nonce and attestation, and is not revoked.
  case sameRequest
  /// As `.sameRequest`, but the key has been revoked since.
  case revoked
  /// The nonce has been used, for a registration or for an admission.
  case nonceSpent
  /// The key was registered before by another request.
  case keyExists
}

/// One use of a key: verified, not yet admitted.
public struct KeyUse: Sendable, Hashable {
  public let keyID: KeyID
  public let counter: SignCount
  public let nonce: Nonce
  public let window: CounterWindow
  public let at: Timestamp

  public init(keyID: KeyID, counter: SignCount, nonce: Nonce, window: CounterWindow, at: Timestamp) {
    self.keyID = keyID
    self.counter = counter
    self.nonce = nonce
    self.window = window
    self.at = at
  }
}

/// What became of an admission. Of several at once with one nonce, or with one counter of one key, at most one is
/// `.admitted`.
public enum Admittance: Sendable, Hashable {
  case admitted
  case nonceSpent
  /// The counter is not greater than `stored`, and not an unused one of the window.
  case counterReplayed(stored: SignCount)
  case revoked
  /// No such key; it may have been removed since it was looked up.
  case unknownKey
}

/// How far behind the greatest counter one may come in, once each.
///
/// For devices that open several sockets at the same instant, whose assertions overtake one another. With 0 each
/// counter must exceed the last. Counters that left a window count as used, also when the window is made larger
/// later.
public struct CounterWindow: Sendable, Hashable {
  public static let largest = 63
  public static let none = CounterWindow(unchecked: 0)

  public let size: Int

  /// `nil` unless `size` is 0 to 63.
  public init?(_ size: Int) {
    guard (0...Self.largest).contains(size) else { return nil }
    self.init(unchecked: size)
  }

  private init(unchecked size: Int) { self.size = size }
}

/// What the registry knows about a key.
public struct KeyRecord: Sendable, Hashable {
  public let key: AttestedKey
  /// The request that registered the key.
  public let request: RegistrationRequest
  public let registeredAt: Timestamp
  /// The greatest counter that was admitted, 0 before the first.
  public let counter: SignCount
  public let lastSeenAt: Timestamp?
  public let revokedAt: Timestamp?

  public init(
    key: AttestedKey, request: RegistrationRequest, registeredAt: Timestamp, counter: SignCount,
    lastSeenAt: Timestamp?, revokedAt: Timestamp?
  ) {
    self.key = key
    self.request = request
    self.registeredAt = registeredAt
    self.counter = counter
    self.lastSeenAt = lastSeenAt
    self.revokedAt = revokedAt
  }
}
