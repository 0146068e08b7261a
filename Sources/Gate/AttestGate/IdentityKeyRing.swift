public import ByteCoding
public import Cryptography

/// A key that signs the client's identity for the upstream.
public struct IdentityKey: Sendable {
  public let privateKey: P256PrivateKey
  /// The key's name: its JWK thumbprint (RFC 7638) in base64url, 43 characters.
  public let kid: String
  /// The time from which the key signs. It is published earlier, so that verifiers can load it first.
  public let signsFrom: Timestamp
  /// The time from which the key is no longer published; `nil` while it is the newest key.
  public let retiresAt: Timestamp?

  public init(privateKey: P256PrivateKey, signsFrom: Timestamp, retiresAt: Timestamp? = nil) {
    self.privateKey = privateKey
    kid = JSONWebKey(privateKey.publicKey).thumbprint
    self.signsFrom = signsFrom
    self.retiresAt = retiresAt
  }

  fileprivate func retiring(at instant: Timestamp) -> IdentityKey {
    IdentityKey(privateKey: privateKey, signsFrom: signsFrom, retiresAt: min(retiresAt ?? instant, instant))
  }
}

extension IdentityKey: Hashable {
  public static func == (first: IdentityKey, second: IdentityKey) -> Bool {
    first.kid == second.kid && first.signsFrom == second.signsFrom && first.retiresAt == second.retiresAt
  }

  public func hash(into hasher: inout Hasher) { hasher.combine(kid) }
}

/// The identity signing keys of a gate, newest first.
public struct IdentityKeyRing: Sendable, Hashable {
  public let keys: [IdentityKey]

  /// Returns `nil` if `keys` is empty or contains a key twice.
  public init?(keys: [IdentityKey]) {
    guard !keys.isEmpty, Set(keys.map(\.kid)).count == keys.count else { return nil }
    self.keys = keys
  }

  private init(unchecked keys: [IdentityKey]) { self.keys = keys }

  /// Makes a ring with one new key, which signs immediately.
  public static func new(at now: Timestamp) throws(CryptographyError) -> IdentityKeyRing {
    IdentityKeyRing(unchecked: [IdentityKey(privateKey: try P256PrivateKey(), signsFrom: now.inMilliseconds)])
  }

  /// Returns the ring with a new key.
  ///
  /// The new key is published now and signs after `overlap`. The other keys are published for another `overlap` after
  /// that, until everything that they signed has expired. Keys that retired before `now` are dropped. With an
  /// `overlap` of zero the other keys are dropped immediately, as needed after a key was stolen.
  public func rotated(at now: Timestamp, overlap: Duration) throws(CryptographyError) -> IdentityKeyRing {
    let now = now.inMilliseconds
    let kept = published(at: now).map { $0.retiring(at: now.advanced(by: overlap * 2)) }
    let new = IdentityKey(privateKey: try P256PrivateKey(), signsFrom: now.advanced(by: overlap))
    return IdentityKeyRing(unchecked: [new] + kept.filter { $0.retiresAt.map { $0 > now } ?? true })
  }

  /// Returns the key that signs at `now`: the newest whose time has come. If there is none because the clocks of
  /// nodes differ, returns the oldest, which verifiers are most likely to know.
  func signing(at now: Timestamp) -> IdentityKey? { keys.first { $0.signsFrom <= now } ?? keys.last }

  /// Returns the keys that are published to verifiers at `now`.
  func published(at now: Timestamp) -> [IdentityKey] { keys.filter { $0.retiresAt.map { $0 > now } ?? true } }
}

extension Timestamp {
  /// The time in the precision that stores keep.
  fileprivate var inMilliseconds: Timestamp { Timestamp(milliseconds: milliseconds) }
}
