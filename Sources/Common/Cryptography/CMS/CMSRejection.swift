/// Why bytes are not signed data of the kind that is taken here (see `SignedData`).
public enum CMSRejection: Error, Sendable, Hashable {
  /// The bytes are not the ASN.1 structure of signed data.
  case malformed(ASN1Error)
  /// The content is not signed data, or the signed content is not data.
  case unexpectedContentType(ObjectIdentifier)
  /// The version of the structure is not supported.
  case unexpectedVersion(Int)
  /// A certificate in the structure cannot be parsed.
  case malformedCertificate(CryptographyError)
  /// The structure does not have exactly one signer.
  case unexpectedSignerCount(Int)
  /// The list of digest algorithms is not just that of the signer.
  case unexpectedDigestAlgorithms
  /// The signer uses a digest algorithm that is not supported.
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
