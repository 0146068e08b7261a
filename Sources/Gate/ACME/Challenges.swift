internal import ByteCoding
internal import Cryptography

/// A way to prove control of a name (RFC 8555 section 8, RFC 8737).
public enum ChallengeKind: String, Sendable, Hashable, CaseIterable {
  /// A certificate in a handshake at port 443.
  case tlsALPN = "tls-alpn-01"
  /// A document at port 80.
  case http = "http-01"
  /// A TXT record in the DNS.
  case dns = "dns-01"
}

/// The challenges that listeners answer.
public struct ListenerChallenges: Sendable, Hashable {
  /// The SHA-256 digests of key authorizations, by name (TLS-ALPN-01).
  public var digests: [String: [UInt8]] = [:]
  /// The key authorizations, by token (HTTP-01).
  public var keyAuthorizations: [String: String] = [:]

  public init() {}
}

/// What proves control of the names of an order.
struct ChallengeAnswers: Sendable {
  var listener = ListenerChallenges()
  /// DNS-01.
  var records: [ChallengeRecord] = []

  /// Adds the answer to a challenge of `kind` for `name`, which may be a wildcard.
  mutating func add(_ kind: ChallengeKind, of name: Identifier, token: String, keyAuthorization: String) {
    let digest = SHA256.hash(Array(keyAuthorization.utf8))
    switch kind {
    case .tlsALPN: listener.digests[name.value] = digest
    case .http: listener.keyAuthorizations[token] = keyAuthorization
    case .dns:
      // RFC 8555 section 8.4: the wildcard's record is that of the domain.
      records.append(
        ChallengeRecord(name: "_acme-challenge.\(name.value.trimmingPrefix("*."))", value: Base64URL.encode(digest)))
    }
  }
}

/// One object of texts: digests in base64url by name, and key authorizations by token. Only the latter have a dot (RFC
/// 8555 section 8.1). Gates of earlier versions that share the storage read the digests.
extension ListenerChallenges: Codable {
  public init(from decoder: any Decoder) throws {
    for (key, text) in try [String: String](from: decoder) {
      if text.contains(".") {
        keyAuthorizations[key] = text
      } else if let digest = Base64URL.decode(text) {
        digests[key] = digest
      }
    }
  }

  public func encode(to encoder: any Encoder) throws {
    let texts = digests.mapValues { Base64URL.encode($0) }
    try texts.merging(keyAuthorizations) { digest, _ in digest }.encode(to: encoder)
  }
}
