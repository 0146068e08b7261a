/// The rule of Web Authentication Level 3 (sections 7.1 and 7.2) that a response breaks.
public enum WebAuthnRejection: String, Error, Sendable, Hashable, CaseIterable {
  /// The client data is not JSON with a type, a challenge and an origin.
  case clientData = "client_data"
  /// It belongs to the other of the two ceremonies.
  case type
  /// The session has no challenge for this ceremony, or a newer one replaced it.
  case challengeUnknown = "challenge_unknown"
  case challengeUsed = "challenge_used"
  case challengeExpired = "challenge_expired"
  case challenge = "challenge_wrong"
  case origin
  case crossOrigin = "cross_origin"
  /// The authenticator data does not have the layout of section 6.1, or has further bytes.
  case authenticatorData = "authenticator_data"
  /// The authenticator's extensions are not a map of texts to values.
  case extensions
  case relyingParty = "rp_id_hash"
  case userPresence = "user_presence"
  case userVerification = "user_verification"
  /// Backed up and not eligible for it at once.
  case backupState = "backup_state"
  /// Eligible for backup now and not at the registration, or the reverse, with a valid signature.
  case backupEligibility = "backup_eligibility"
  /// A registration without a credential, or an authentication with one.
  case attestedCredential = "attested_credential"
  /// Empty, longer than 1023 bytes, or another one than the response names.
  case credentialID = "credential_id"
  /// The key is not a COSE key of a requested kind in the form of section 6.5.1.
  case publicKey = "public_key"
  /// The algorithm of the key was not requested.
  case algorithm
  /// The attestation's statement is malformed, or its own signature is wrong.
  case attestation
  /// The credential does not belong to the user.
  case credentialUnknown = "credential_unknown"
  case userHandle = "user_handle"
  case signature
  /// The count of signatures did not grow: there may be a copy of the key.
  case signatureCount = "signature_count"
}
