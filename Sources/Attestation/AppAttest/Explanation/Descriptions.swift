internal import ByteCoding
internal import Cryptography

extension AttestationRejection: CustomStringConvertible {
  /// The reason as a sentence, for reports. Logs contain `step`.
  public var description: String {
    switch self {
    case .notCBOR(let error): "the object: \(error)"
    case .unexpectedMembers(let part): "the \(part) does not have exactly the members that it should have"
    case .unexpectedFormat(let format): "the format is \(format), not \(AttestationObject.format)"
    case .unexpectedCertificateCount(let count): "x5c has \(count) certificates, not 2"
    case .malformedCertificate(let error): "x5c: \(error)"
    case .malformedAuthenticatorData(let fault): "authData: \(fault)"
    case .untrustedChain(let rejection): rejection.description
    case .unexpectedLeafKey: "the leaf's key is not on P-256"
    case .nonceMissing: "the leaf has no extension \(AttestationVerifier.nonceExtension)"
    case .malformedNonce: "the leaf's extension \(AttestationVerifier.nonceExtension) is not one nonce of 32 bytes"
    case .nonceMismatch(let expected, let found):
      Self.differentNonce(
        expected, found, because: "another client data hash was attested, or the authenticator data was changed")
    case .keyIDMismatch(let expected): "the key identifier \(expected.base64) is not that of the leaf's key"
    case .rpIDMismatch(let found): "the RP ID hash \(Hex.encode(found)) is that of another app"
    case .counterNotZero(let counter): "the counter is \(counter.value), not 0"
    case .unknownEnvironment(let aaguid): "the aaguid \(Hex.encode(aaguid)) stands for no environment"
    case .environmentNotAllowed(let environment, let app):
      "\(app) may not be in the environment \(environment.rawValue)"
    case .credentialIDMismatch(let expected, let found):
      "the credential is called \(Base64.encode(found)), not \(expected.base64)"
    case .credentialKeyMismatch(let expected, let found):
      "the COSE key is \(Base64.encode(found)), the leaf's is \(Base64.encode(expected))"
    case .receipt(let rejection): rejection.description
    }
  }
}

extension AttestationRejection {
  /// The sentence about a leaf whose nonce is not the expected one.
  static func differentNonce(_ expected: [UInt8], _ found: [UInt8], because reason: String) -> String {
    "the leaf's nonce is \(Hex.encode(found)), not \(Hex.encode(expected)): \(reason)"
  }
}

extension AssertionRejection: CustomStringConvertible {
  /// The reason as a sentence, for reports. Logs contain `step`.
  public var description: String {
    switch self {
    case .notCBOR(let error): "the assertion: \(error)"
    case .unexpectedMembers: "the assertion does not have exactly the members signature and authenticatorData"
    case .malformedAuthenticatorData(let fault): "authenticatorData: \(fault)"
    case .invalidSignature:
      "the signature is another key's, or one of another client data hash or of other authenticator data"
    case .rpIDMismatch(let expected, let found): "the RP ID hash \(Hex.encode(found)) is not that of \(expected)"
    case .counterNotGreater(let found, let last): "the counter is \(found.value), and the last one was \(last.value)"
    }
  }
}

extension ReceiptRejection: CustomStringConvertible {
  /// The reason as a sentence, for reports. Logs contain `step`.
  public var description: String {
    switch self {
    case .tooLong(let count, let limit): "the receipt has \(count) bytes, where \(limit) are allowed"
    case .notSignedData(let rejection): "the receipt is not signed data: \(rejection)"
    case .malformedFields(let error): "the receipt's fields: \(error)"
    case .missingField(let field): "the receipt has no field \(field.rawValue) (\(field))"
    case .repeatedField(let field): "the receipt has field \(field.rawValue) (\(field)) more than once"
    case .malformedField(let field): "the receipt's field \(field.rawValue) (\(field)) is malformed"
    case .untrustedChain(let rejection): rejection.description
    case .markerMissing(let subject): "the certificate of \(subject) is not one for receipts"
    case .invalidSignature: "the signature is not one of the receipt's fields by its signer"
    case .appIDMismatch(let expected, let found): "the receipt is for \(found), not for \(expected)"
    case .publicKeyMismatch(_, let found): "the receipt is for another key: \(Base64.encode(found))"
    case .unexpectedKind(let kind):
      "the receipt is of the kind \(kind.rawValue), not one that comes with an attestation"
    case .clientDataHashMismatch: "the receipt is for another client data hash"
    case .environmentMismatch(let expected, let found):
      "the receipt is from \(found.rawValue), the key from \(expected.rawValue)"
    case .expired(let end, let instant): "the receipt expired at \(end), before \(instant)"
    }
  }
}

extension AuthenticatorDataRejection: CustomStringConvertible {
  public var description: String {
    switch self {
    case .tooShort(let count, let minimum): "\(count) bytes where at least \(minimum) should be"
    case .credentialIDLength(let count): "a credential identifier of \(count) bytes, not \(KeyID.size)"
    case .malformedCredentialKey: "the credential's key is not a COSE key on P-256"
    case .extensionsNotCBOR(let error): "the extensions, counted from their first byte: \(error)"
    case .extensionsNotMap: "the extensions are not a map"
    case .malformedExtension(let name): "the extension \(name) has a value of another type"
    }
  }
}
