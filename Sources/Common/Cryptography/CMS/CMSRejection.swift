/// Why bytes are not signed data of the kind that is taken here (see `SignedData`).
public enum CMSRejection: Error, Sendable, Hashable {
  case malformed(ASN1Error)
  case unexpectedContentType(ObjectIdentifier)
  case unexpectedVersion(Int)
  case malformedCertificate(CryptographyError)
  case unexpectedSignerCount(Int)
  /// The list of digest algorithms is not just that of the signer.
  case unexpectedDigestAlgorithms
  case unsupportedDigest(ObjectIdentifier)
  /// Not ECDSA with the signer's digest.
  case unsupportedSignature(ObjectIdentifier)
  /// Algorithm parameters other than those that belong to the algorithm.
  case unexpectedParameters(ObjectIdentifier)
  /// None of the certificates, or more than one, is the one that the signer names.
  case signerCertificateMissing
  /// The signed attributes lack the content's type or digest, or have one twice.
  case malformedAttributes
}
