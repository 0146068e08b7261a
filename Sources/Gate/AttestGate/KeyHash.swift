public import AppAttest
internal import ByteCoding
internal import Cryptography

/// The public name of a key: the SHA-256 of the key id in base64url without padding, 43 characters.
///
/// A key id is one of the credentials of an upgrade request, so upstreams and logs never receive it. The hash is
/// equally stable and unique.
public struct KeyHash: Sendable, Hashable {
  public let text: String

  public init(of keyID: KeyID) { text = Base64URL.encode(SHA256.hash(keyID.bytes)) }

  /// The first 16 characters, enough to find a key by a log line.
  public var short: String { String(decoding: text.utf8.prefix(16), as: UTF8.self) }
}
