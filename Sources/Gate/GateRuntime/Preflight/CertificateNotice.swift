public import ByteCoding
public import Cryptography

/// When to warn of the end of a certificate.
public enum CertificateNotice {
  /// How long before its end a certificate causes warnings: 14 days, or a third of its lifetime if that is shorter.
  /// Certificates of some authorities are valid for less than 14 days, and are renewed at half of that.
  public static func period(of certificate: Certificate) -> Duration {
    min(.seconds(14 * 86_400), certificate.notAfter.since(certificate.notBefore) / 3)
  }

  /// Whether `certificate` has ended, or should be renewed at `now`.
  public static func endsSoon(_ certificate: Certificate, at now: Timestamp) -> Bool {
    certificate.notAfter.since(now) < period(of: certificate)
  }
}
