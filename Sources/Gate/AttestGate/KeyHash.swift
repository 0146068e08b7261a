public import AppAttest
internal import ByteCoding
internal import Cryptography

/// The name by which the world behind the gate knows a key: the SHA-256 of the key id, base64url without padding, 43
/// characters.
///
/// A key id is half of what an upgrade has to show, so neither upstreams nor logs get to see it; the hash is as
/// stable and as unique.
public struct KeyHash: Sendable, Hashable {
  public let text: String

  public init(of keyID: KeyID) { text = Base64URL.encode(SHA256.hash(keyID.bytes)) }

  /// Sixteen characters, enough to find a key by in a log.
  public var short: String { String(text.prefix(16)) }
}
