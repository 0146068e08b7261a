extension CMSRejection: CustomStringConvertible {
  public var description: String {
    switch self {
    case .malformed(let error): error.description
    case .unexpectedContentType(let type): "content of the type \(type)"
    case .unexpectedVersion(let version): "version \(version), not 1"
    case .malformedCertificate(let error): error.description
    case .unexpectedSignerCount(let count): "\(count) signers, not 1"
    case .unexpectedDigestAlgorithms: "digest algorithms other than the signer's"
    case .unsupportedDigest(let algorithm): "the digest \(algorithm), which is not supported"
    case .unsupportedSignature(let algorithm): "the signature \(algorithm), which is not ECDSA with the signer's digest"
    case .unexpectedParameters(let algorithm): "parameters that do not belong to \(algorithm)"
    case .signerCertificateMissing: "no certificate, or more than one, of the signer"
    case .malformedAttributes: "signed attributes without the content's type and digest"
    }
  }
}

extension ASN1Error: CustomStringConvertible {
  public var description: String {
    switch self {
    case .truncated: "an element is longer than what is there"
    case .trailingBytes(let count): "\(count) bytes behind the end"
    case .lengthNotMinimal: "a length in more octets than it needs"
    case .indefiniteLength: "an indefinite length where none may be"
    case .longTag: "a tag number above 30"
    case .tooDeep: "nested too deep"
    case .unexpectedTag(let expected, let found): "an element with tag \(found) where \(expected) should be"
    case .malformed(let reason): reason
    }
  }
}
