/// Why a sign-in with an identity provider, or the connection to one, is refused.
public enum FederationRejection: String, Error, Sendable, Hashable, CaseIterable {
  case challengeUnknown = "challenge_unknown"
  case challengeUsed = "challenge_used"
  case challengeExpired = "challenge_expired"
  /// The challenge was given to another app instance.
  case attestedKey = "attested_key"
  /// No account is connected to the user of the provider.
  case identityUnknown = "identity_unknown"
  /// The account has no device that is bound to the calling app instance.
  case deviceUnknown = "device_unknown"
  /// The policy requires biometry, which an ID token does not prove.
  case unlock

  // The rules of the ID token.
  case malformed = "token_malformed"
  case type = "not_an_id_token"
  case issuer = "wrong_issuer"
  case audience = "wrong_audience"
  case authorizedParty = "wrong_authorized_party"
  case algorithm = "algorithm_refused"
  case unknownKey = "unknown_key"
  case ambiguousKey = "ambiguous_key"
  case signature = "wrong_signature"
  case expired = "token_expired"
  case issuedAt = "wrong_issue_time"
  case notYetValid = "token_not_yet_valid"
  case nonce = "wrong_nonce"
  case accessTokenHash = "wrong_access_token_hash"
  case subject = "wrong_subject"
}
