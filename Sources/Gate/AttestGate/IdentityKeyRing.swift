public import ByteCoding
public import Cryptography

/// A key that signs what a gate tells an upstream about a client.
public struct IdentityKey: Sendable {
  public let privateKey: P256PrivateKey
  /// The key's name: its JWK thumbprint (RFC 7638) in base64url, 43 characters.
  public let kid: String
  /// Published from the beginning, but signs only from then on: verifiers have that long to learn of it.
  public let signsFrom: Timestamp
  /// Not published from then on; `nil` while no younger key is there.
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

/// The keys of a gate's identities, the youngest first.
public struct IdentityKeyRing: Sendable, Hashable {
  public let keys: [IdentityKey]

  /// `nil` unless there is a key, and each of them once.
  public init?(keys: [IdentityKey]) {
    guard !keys.isEmpty, Set(keys.map(\.kid)).count == keys.count else { return nil }
    self.keys = keys
  }

  private init(unchecked keys: [IdentityKey]) { self.keys = keys }

  /// A ring with one new key, which signs at once.
  public static func new(at now: Timestamp) throws(CryptographyError) -> IdentityKeyRing {
    IdentityKeyRing(unchecked: [IdentityKey(privateKey: try P256PrivateKey(), signsFrom: now.inMilliseconds)])
  }

  /// The ring with a new key, which is published now and signs `overlap` later; the others are published for as long
  /// again, until the last of what they signed has expired and been forgotten. Keys that retired before `now` are
  /// dropped.
  ///
  /// With an overlap of zero the others are gone at once: for a key that was stolen.
  public func rotated(at now: Timestamp, overlap: Duration) throws(CryptographyError) -> IdentityKeyRing {
    let now = now.inMilliseconds
    let kept = published(at: now).map { $0.retiring(at: now.advanced(by: overlap * 2)) }
    let new = IdentityKey(privateKey: try P256PrivateKey(), signsFrom: now.advanced(by: overlap))
    return IdentityKeyRing(unchecked: [new] + kept.filter { $0.retiresAt.map { $0 > now } ?? true })
  }

  /// The key that signs at `now`: the youngest whose time has come. Where none has, the clocks of nodes differ, and the
  /// oldest is the one that verifiers are the surest to know.
  func signing(at now: Timestamp) -> IdentityKey? { keys.first { $0.signsFrom <= now } ?? keys.last }

  /// The keys that verifiers are told of at `now`.
  func published(at now: Timestamp) -> [IdentityKey] { keys.filter { $0.retiresAt.map { $0 > now } ?? true } }
}

extension Timestamp {
  /// As stores keep it.
  fileprivate var inMilliseconds: Timestamp { Timestamp(milliseconds: milliseconds) }
}
