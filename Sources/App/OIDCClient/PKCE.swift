internal import ByteCoding
internal import Crypto

/// Proof Key for Code Exchange with S256 (RFC 7636): a code that was stolen is of no use without the verifier.
public struct PKCE: Sendable, Hashable {
  /// 43 characters from 32 random bytes; sent with the code.
  public let verifier: String

  /// Makes a verifier from 32 random bytes.
  public init(randomBytes: [UInt8]) { verifier = Base64URL.encode(randomBytes) }

  /// Uses a verifier that was kept.
  public init(verifier: String) { self.verifier = verifier }

  /// What the authorization request carries: the SHA-256 hash of the verifier, in base64url.
  public var challenge: String { Base64URL.encode(Array(SHA256.hash(data: Array(verifier.utf8)))) }

  /// The name of the method in requests and in discovery documents.
  public static let method = "S256"
}

extension PKCE: CustomStringConvertible, CustomReflectable {
  /// The method.
  public var description: String { Self.method }
  /// No members: the verifier stays out of logs.
  public var customMirror: Mirror { Mirror(self, children: [:]) }
}
