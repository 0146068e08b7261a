public import ByteCoding

/// Admits debug builds that presented a client certificate of the configured authority.
///
/// The TLS handshake verifies the certificate; this rule only checks its subject. All debug builds share one
/// certificate: it proves that the client is one of our builds, but identifies no device.
public struct ClientCertificateRule: AdmissionRule {
  private let allowedSubjects: Set<String>

  /// - Parameter allowedSubjects: The accepted subjects in the string form of RFC 2253. An empty set accepts every
  ///   subject.
  public init(allowedSubjects: Set<String> = []) { self.allowedSubjects = allowedSubjects }

  /// Whether the subject of `certificate` is accepted.
  public func accepts(_ certificate: VerifiedCertificate) -> Bool {
    allowedSubjects.isEmpty || allowedSubjects.contains(certificate.subject)
  }

  public func evaluate(_ claim: AdmissionClaim, at now: Timestamp) async throws(Denial) -> Principal? {
    guard let certificate = claim.certificate else { return nil }
    guard accepts(certificate) else {
      throw .certificateRefused(subject: certificate.subject)
    }
    return .certificate(certificate)
  }
}
