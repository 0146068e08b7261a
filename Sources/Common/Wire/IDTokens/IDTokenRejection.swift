/// Why an ID token is not accepted. Each rule has its own case, and each case its code.
public enum IDTokenRejection: Error, Sendable, Hashable {
  /// It is not a signed token at all: what is wrong.
  case malformed(String)
  /// `typ` names another kind of token.
  case type(String)
  /// `iss` is another issuer.
  case issuer(String?)
  /// `aud` lacks this client, or has audiences that are not trusted.
  case audience([String])
  /// `azp` is another client, or missing among several audiences.
  case authorizedParty(String?)
  /// The algorithm is not one that is accepted: `none`, HMAC, or one that the key is not for.
  case algorithm(String)
  /// No key fits: the key identifier of the header.
  case unknownKey(String?)
  /// There is no key identifier, and several keys would fit.
  case ambiguousKey
  /// The signature does not fit the key.
  case signature
  /// It has expired, or has no `exp`.
  case expired
  /// It was issued in the future or too long ago, or has no `iat`.
  case issuedAt
  /// `nbf` is in the future.
  case notYetValid
  /// `nonce` is not that of this sign-in.
  case nonce
  /// `at_hash` is not that of the access token.
  case accessTokenHash
  /// There is no `sub`, or another one than before.
  case subject
}

extension IDTokenRejection {
  /// The code, for scripts.
  public var code: String {
    switch self {
    case .malformed: "token_malformed"
    case .type: "not_an_id_token"
    case .issuer: "wrong_issuer"
    case .audience: "wrong_audience"
    case .authorizedParty: "wrong_authorized_party"
    case .algorithm: "algorithm_refused"
    case .unknownKey: "unknown_key"
    case .ambiguousKey: "ambiguous_key"
    case .signature: "wrong_signature"
    case .expired: "token_expired"
    case .issuedAt: "wrong_issue_time"
    case .notYetValid: "token_not_yet_valid"
    case .nonce: "wrong_nonce"
    case .accessTokenHash: "wrong_access_token_hash"
    case .subject: "wrong_subject"
    }
  }
}

extension IDTokenRejection: CustomStringConvertible {
  /// A clause without a full stop. Values from the token are quoted and shortened.
  public var description: String {
    switch self {
    case .malformed(let reason): reason
    case .type(let found): "typ is \(Self.quoted(found)), which is another kind of token"
    case .issuer(let found): "iss is \(Self.quoted(found)), which is not the provider"
    case .audience(let found):
      "aud is \(found.prefix(8).map { Self.quoted($0) }.joined(separator: ", ")), which is not this client alone"
    case .authorizedParty(let found):
      found == nil
        ? "azp is missing, and aud is not one client" : "azp is \(Self.quoted(found)), which is not this client"
    case .algorithm(let found): "alg is \(Self.quoted(found)), which is not accepted or not for the key"
    case .unknownKey(let found): "the provider has no key \(Self.quoted(found))"
    case .ambiguousKey: "it names no key, and the provider has several"
    case .signature: "its signature is not that of the provider's key"
    case .expired: "it has expired, or has no exp"
    case .issuedAt: "iat is in the future, too long ago, or missing"
    case .notYetValid: "nbf is in the future"
    case .nonce: "nonce is not that of this sign-in"
    case .accessTokenHash: "at_hash is not that of the access token"
    case .subject: "sub is missing, or another user than before"
    }
  }

  private static func quoted(_ text: String?) -> String {
    text.map(ShownValue.quoted) ?? "missing"
  }
}
