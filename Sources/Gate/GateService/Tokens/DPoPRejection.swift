/// The rule of RFC 9449 section 4.3 that a DPoP proof breaks.
enum DPoPRejection: Error, Sendable, Hashable {
  /// The request has no field `DPoP`.
  case missing
  /// The request has more than one field `DPoP`.
  case repeated
  /// The proof is longer than `DPoPProof.longest`.
  case tooLong(bytes: Int)
  /// The proof is not three parts in base64url, separated by dots.
  case notAToken
  /// The header is not a JSON object of the required form.
  case malformedHeader
  /// `typ` is not `dpop+jwt`.
  case unexpectedType
  /// `alg` is not `ES256`.
  case unexpectedAlgorithm
  /// The header has `crit`, and the gate knows no extension.
  case unknownExtension
  /// `jwk` is not the public part of a key on P-256.
  case malformedKey
  /// `jwk` has a private part.
  case privateKey
  /// The claims are not a JSON object of the required form.
  case malformedClaims
  /// A required claim is missing.
  case missingClaim(String)
  /// The signature does not have 64 bytes.
  case malformedSignature
  /// `htm` is another method.
  case methodMismatch
  /// `htu` is another URI.
  case uriMismatch
  /// `nonce` is not the nonce of the request's assertion.
  case nonceMismatch
  /// `iat` is too long before or after now.
  case notFresh(seconds: Int64)
  /// The key in the header did not sign the proof.
  case invalidSignature
}
