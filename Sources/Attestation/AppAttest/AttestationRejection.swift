public import CBOR
public import Cryptography

/// The rules of an attestation, in the order in which they are checked.
///
/// The raw values are stable: logs and reports name the rule by them.
public enum AttestationStep: String, Sendable, Hashable, CaseIterable {
  /// The object has exactly the structure that Apple describes.
  case format
  /// Leaf, intermediate and a pinned root make a chain that is valid at the instant of verification.
  case certificateChain = "certificate_chain"
  /// The leaf was issued for this authenticator data and this client data hash.
  case nonce
  /// The key identifier names the leaf's key.
  case keyID = "key_id"
  /// The authenticator data is for an app that is configured.
  case rpID = "rp_id"
  /// The key has not signed yet.
  case counter
  /// The key was made in an environment in which the app may be.
  case environment
  /// The credential is called by the key identifier.
  case credentialID = "credential_id"
  /// The key in the authenticator data is the leaf's.
  case credentialKey = "credential_key"
  /// The bytes after the key are empty or one map of extensions.
  case extensions
  /// Apple signed the receipt, and it is for this app, this key and this attestation.
  case receipt
}

/// Why an attestation is not accepted: the rule that it breaks, and the values that show it.
public enum AttestationRejection: Error, Sendable, Hashable {
  /// The attestation is not the CBOR that the decoder accepts.
  case notCBOR(CBORError)
  /// The object or its `attStmt` does not have exactly the members that it should have, or one of another type.
  case unexpectedMembers(of: String)
  /// The member `fmt` is not `apple-appattest`. The value comes from the client.
  case unexpectedFormat(String)
  /// `x5c` does not contain exactly a leaf and an intermediate.
  case unexpectedCertificateCount(Int)
  /// A certificate of `x5c` cannot be parsed.
  case malformedCertificate(CryptographyError)
  /// The authenticator data cannot be parsed.
  case malformedAuthenticatorData(AuthenticatorDataRejection)

  /// The certificates do not chain to a pinned root, or are not valid at the instant.
  case untrustedChain(ChainRejection)
  /// The leaf's key is not on P-256.
  case unexpectedLeafKey

  /// The leaf has no extension 1.2.840.113635.100.8.2.
  case nonceMissing
  /// The leaf's extension 1.2.840.113635.100.8.2 has another form than one octet string of 32 bytes.
  case malformedNonce
  /// The leaf was issued for other authenticator data or another client data hash. Both values have 32 bytes.
  case nonceMismatch(expected: [UInt8], found: [UInt8])

  /// The key identifier is not the SHA-256 hash of the leaf's key.
  case keyIDMismatch(expected: KeyID)
  /// No configured app has this RP ID hash.
  case rpIDMismatch(found: [UInt8])
  /// The key has signed before.
  case counterNotZero(SignCount)
  /// The aaguid is that of neither environment.
  case unknownEnvironment(aaguid: [UInt8])
  /// The configuration of the app does not allow the key's environment.
  case environmentNotAllowed(AttestEnvironment, app: AppID)
  /// The credential id in the authenticator data is not the key identifier.
  case credentialIDMismatch(expected: KeyID, found: [UInt8])
  /// The key in the authenticator data is not the leaf's key. Both values are in X9.62 form.
  case credentialKeyMismatch(expected: [UInt8], found: [UInt8])

  /// The receipt breaks one of its rules.
  case receipt(ReceiptRejection)
}

extension AttestationRejection {
  /// The rule that is broken.
  public var brokenStep: AttestationStep {
    switch self {
    case .notCBOR, .unexpectedMembers, .unexpectedFormat, .unexpectedCertificateCount, .malformedCertificate: .format
    case .malformedAuthenticatorData(let fault): fault.isAboutExtensions ? .extensions : .format
    case .untrustedChain, .unexpectedLeafKey: .certificateChain
    case .nonceMissing, .malformedNonce, .nonceMismatch: .nonce
    case .keyIDMismatch: .keyID
    case .rpIDMismatch: .rpID
    case .counterNotZero: .counter
    case .unknownEnvironment, .environmentNotAllowed: .environment
    case .credentialIDMismatch: .credentialID
    case .credentialKeyMismatch: .credentialKey
    case .receipt: .receipt
    }
  }

  /// The stable word for the broken rule in logs. For receipts it includes the rule of the receipt:
  /// `receipt_signature`.
  public var step: String {
    switch self {
    case .receipt(let rejection): AttestationVerifier.receiptPrefix + rejection.step
    default: brokenStep.rawValue
    }
  }
}
