public import ByteCoding

/// Lets debug builds in that showed a client certificate of the configured authority.
///
/// The TLS handshake verifies the certificate; this rule only says whose are welcome. All debug builds share one
/// certificate, so it proves a build of ours and no device.
public struct ClientCertificateRule: AdmissionRule {
  private let allowedSubjects: Set<String>

  /// - Parameter allowedSubjects: as RFC 2253 writes them; empty takes every subject.
  public init(allowedSubjects: Set<String> = []) { self.allowedSubjects = allowedSubjects }

  public func evaluate(_ claim: AdmissionClaim, at now: Timestamp) async throws(Denial) -> Principal? {
    guard let certificate = claim.certificate else { return nil }
    guard allowedSubjects.isEmpty || allowedSubjects.contains(certificate.subject) else {
      throw .certificateRefused(subject: certificate.subject)
    }
    return .certificate(certificate)
  }
}
