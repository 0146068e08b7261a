public import CBOR
public import Cryptography

/// The rules of an attestation, in the order in which they are checked.
///
/// The raw values are stable: logs and reports name the rule by them.
public enum AttestationStep: String, Sendable, Hashable, CaseIterable {
  /// The object is what Apple describes, and nothing else.
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
  /// Behind the key there is nothing, or one map of extensions.
  case extensions
  /// Apple signed the receipt, and it is for this app, this key and this attestation.
  case receipt
}

/// Why an attestation is not accepted: the rule that it breaks, and the values that show it.
public enum AttestationRejection: Error, Sendable, Hashable {
  case notCBOR(CBORError)
  /// The object or its `attStmt` does not have exactly the members that it should have, or one of another type.
  case unexpectedMembers(of: String)
  case unexpectedFormat(String)
  /// `x5c` holds a leaf and an intermediate.
  case unexpectedCertificateCount(Int)
  case malformedCertificate(CryptographyError)
  case malformedAuthenticatorData(AuthenticatorDataFault)

  case untrustedChain(ChainRejection)
  /// The leaf's key is not on P-256.
  case unexpectedLeafKey

  case nonceMissing
  /// The leaf's extension 1.2.840.113635.100.8.2 has another form than one octet string of 32 bytes.
  case malformedNonce
  case nonceMismatch(expected: [UInt8], found: [UInt8])

  case keyIDMismatch(expected: KeyID)
  /// No configured app has this RP ID hash.
  case rpIDMismatch(found: [UInt8])
  case counterNotZero(SignCount)
  /// The aaguid stands for neither environment.
  case unknownEnvironment(aaguid: [UInt8])
  case environmentNotAllowed(AttestEnvironment, app: AppID)
  case credentialIDMismatch(expected: KeyID, found: [UInt8])
  case credentialKeyMismatch(expected: [UInt8], found: [UInt8])

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

  /// The word for the broken rule in logs; for receipts it says which of theirs: `receipt_signature`.
  public var step: String {
    switch self {
    case .receipt(let rejection): AttestationVerifier.receiptPrefix + rejection.step
    default: brokenStep.rawValue
    }
  }
}
