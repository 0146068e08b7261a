public import ByteCoding
public import Cryptography

/// The rules of a receipt, in the order in which they are checked. The raw values are stable.
public enum ReceiptStep: String, Sendable, Hashable, CaseIterable {
  /// Signed data (RFC 5652) with a receipt's fields in it.
  case format
  /// The signer's certificate, marked as one for receipts, leads to a pinned root, valid at the instant.
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
  case tooLong(Int, limit: Int)
  case notSignedData(CMSRejection)
  /// The signed content is not a set of fields.
  case malformedFields(ASN1Error)
  case missingField(ReceiptField)
  case repeatedField(ReceiptField)
  /// A field's value is not what its type asks for.
  case malformedField(ReceiptField)

  case untrustedChain(ChainRejection)
  /// The signer's certificate lacks the marker 1.2.840.113635.100.12.15: it is for something else.
  case markerMissing(subject: String)
  case invalidSignature

  case appIDMismatch(expected: AppID, found: String)
  case publicKeyMismatch(expected: [UInt8], found: [UInt8])
  /// A newer receipt where the first one should be, with no hash that could be compared.
  case unexpectedKind(Receipt.Kind)
  case clientDataHashMismatch
  case environmentMismatch(expected: AttestEnvironment, found: AttestEnvironment)
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
