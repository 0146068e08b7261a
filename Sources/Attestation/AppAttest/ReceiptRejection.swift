public import ByteCoding
public import Cryptography

/// The rules of a receipt, in the order in which they are checked. The raw values are stable.
public enum ReceiptStep: String, Sendable, Hashable, CaseIterable {
  /// Signed data (RFC 5652) with a receipt's fields in it.
  case format
  /// The signer's certificate has the marker for receipts and chains to a pinned root, valid at the instant.
  case certificateChain = "certificate_chain"
  /// The signer signed these fields.
  case signature
  /// The receipt is for this app.
  case appID = "app_id"
  /// The receipt is for this key.
  case publicKey = "public_key"
  /// The receipt was made for this attestation.
  case clientDataHash = "client_data_hash"
  /// The receipt is from the environment from which the key is.
  case environment
  /// The receipt has not expired.
  case expiry
}

/// Why a receipt is not accepted: the rule that it breaks, and the values that show it.
public enum ReceiptRejection: Error, Sendable, Hashable {
  /// The receipt has more bytes than `limit`.
  case tooLong(Int, limit: Int)
  /// The receipt is not signed data (RFC 5652).
  case notSignedData(CMSRejection)
  /// The signed content is not a set of fields.
  case malformedFields(ASN1Error)
  /// A required field is missing.
  case missingField(ReceiptField)
  /// A field occurs twice.
  case repeatedField(ReceiptField)
  /// The value of a field does not have the field's type.
  case malformedField(ReceiptField)

  /// The signer's certificate does not chain to a pinned root, or is not valid at the instant.
  case untrustedChain(ChainRejection)
  /// The signer's certificate lacks the marker 1.2.840.113635.100.12.15: it is for something else.
  case markerMissing(subject: String)
  /// The signer did not sign this content.
  case invalidSignature

  /// The receipt is for another app. The found value comes from the receipt.
  case appIDMismatch(expected: AppID, found: String)
  /// The receipt is for another key. Both values are in X9.62 form.
  case publicKeyMismatch(expected: [UInt8], found: [UInt8])
  /// A newer receipt where the first one should be, with no hash that could be compared.
  case unexpectedKind(Receipt.Kind)
  /// The receipt was made for another attestation.
  case clientDataHashMismatch
  /// The receipt is from another environment than the key.
  case environmentMismatch(expected: AttestEnvironment, found: AttestEnvironment)
  /// The receipt expired before the instant of verification.
  case expired(Timestamp, at: Timestamp)

  /// The rule that is broken.
  public var brokenStep: ReceiptStep {
    switch self {
    case .tooLong, .notSignedData, .malformedFields, .missingField, .repeatedField, .malformedField: .format
    case .untrustedChain, .markerMissing: .certificateChain
    case .invalidSignature: .signature
    case .appIDMismatch: .appID
    case .publicKeyMismatch: .publicKey
    case .unexpectedKind, .clientDataHashMismatch: .clientDataHash
    case .environmentMismatch: .environment
    case .expired: .expiry
    }
  }

  /// The word for the broken rule in logs.
  public var step: String { brokenStep.rawValue }
}
