/// Why bytes are not signed data of the supported kind (see `SignedData`).
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
  /// The parameters do not belong to the algorithm.
  case unexpectedParameters(ObjectIdentifier)
  /// The signer names no certificate of the structure, or more than one.
  case signerCertificateMissing
  /// The signed attributes lack the content's type or digest, or have one twice.
  case malformedAttributes
}
