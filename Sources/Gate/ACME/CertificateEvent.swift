public import ByteCoding

/// What happened to a certificate, for the log and the metrics.
public enum CertificateEvent: Sendable, Hashable {
  case accountMade(url: String)
  /// A certificate is being ordered. `renewing` is the end of the one that it replaces.
  case ordering(renewing: Timestamp?)
  /// A certificate was ordered here, or by another gate that shares the storage.
  case obtained(IssuedCertificate, byOtherGate: Bool, renewal: Timestamp)
  case failed(ACMEError, attempts: Int, retry: Timestamp, hasCertificate: Bool)
  case learned(RenewalWindow, renewal: Timestamp)
  /// The server's clock minus this machine's.
  case clocksDiffer(Duration)
  /// The record of a challenge could not be removed. It is worthless and may stay.
  case recordNotRemoved(ACMEError)
  /// The storage cannot be read or written. Reported when it begins, and every hour while it lasts.
  case storageFailed(ACMEError)
  /// The stored certificate cannot be used. Reported once until another one is stored; a new one is ordered.
  case damaged(ACMEError)
}

/// What is known about a certificate.
public struct CertificateStatus: Sendable, Hashable {
  /// `nil` before the first one.
  public var certificate: IssuedCertificate?
  /// When this gate obtained or adopted the certificate; for one that was stored, the beginning of its validity.
  public var obtainedAt: Timestamp?
  /// When it will be renewed, or when the next attempt is.
  public var nextAttempt: Timestamp?
  public var lastFailure: RenewalPlan.Failure?
  public var window: RenewalWindow?

  public init() {}
}
