public import ByteCoding

/// Why a certificate is not trusted. Subjects are as in `Certificate.subject`.
public enum ChainRejection: Error, Sendable, Hashable {
  /// The instant is before the certificate's validity.
  case notYetValid(subject: String, notBefore: Timestamp, at: Timestamp)
  /// The instant is after the certificate's validity.
  case expired(subject: String, notAfter: Timestamp, at: Timestamp)
  /// No chain of valid signatures leads from the certificate to a pinned root, or a rule of RFC 5280 is broken on the
  /// way: an issuer that is not an authority, a path that is too long. `reason` is OpenSSL's, and `subject` names the
  /// certificate where it stopped.
  case untrusted(subject: String, reason: String)
  /// A certificate that issued another one does not say in basicConstraints that it may.
  case issuerIsNoAuthority(subject: String)
  /// A certificate below the root has a critical extension that is not processed, such as certificate policies. The
  /// identifier is in dotted form.
  case criticalExtension(subject: String, identifier: String)
  /// An extension of a certificate cannot be read, critical or not, or contradicts another one.
  case unreadableExtension(subject: String)
  /// The first certificate is an authority itself.
  case leafIsAuthority(subject: String)
  /// The first certificate's key is not for signatures (keyUsage without digitalSignature).
  case leafMustNotSign(subject: String)
  /// There is a certificate outside the chain. No signature covers its bytes.
  case strayCertificate(subject: String)
  /// The number of certificates, including the root, differs from the protocol's.
  case unexpectedLength(found: Int, expected: Int)
  /// OpenSSL failed.
  case operationFailed(String)
}

extension ChainRejection: CustomStringConvertible {
  public var description: String {
    switch self {
    case .notYetValid(let subject, let notBefore, let instant):
      "the certificate of \(subject) is valid from \(notBefore), not yet at \(instant)"
    case .expired(let subject, let notAfter, let instant):
      "the certificate of \(subject) was valid until \(notAfter), no longer at \(instant)"
    case .untrusted(let subject, let reason): "the certificate of \(subject) leads to no trusted root: \(reason)"
    case .issuerIsNoAuthority(let subject): "\(subject) issued a certificate but is not an authority"
    case .criticalExtension(let subject, let identifier):
      "the certificate of \(subject) has the critical extension \(identifier), which is not processed here"
    case .unreadableExtension(let subject):
      "the certificate of \(subject) has an extension that cannot be read, or that contradicts another one"
    case .leafIsAuthority(let subject): "the first certificate, of \(subject), is an authority"
    case .leafMustNotSign(let subject): "the key of \(subject) is not for signatures"
    case .strayCertificate(let subject): "the certificate of \(subject) is not part of the chain"
    case .unexpectedLength(let found, let expected): "the chain has \(found) certificates, not \(expected)"
    case .operationFailed(let reason): "the chain could not be verified: \(reason)"
    }
  }
}
