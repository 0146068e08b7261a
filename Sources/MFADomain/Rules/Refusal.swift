internal import ByteCoding

/// Why an operation does not do what was asked. What the outside reads of it is written in one switch of the service.
public enum Refusal: Error, Sendable, Hashable {
  /// The request is not written as it must be.
  case invalid(InvalidValue)
  /// Signature, challenge, device or user are wrong; which of them is not said.
  case authenticationFailed
  /// No access token came, or one that is not good any more.
  case sessionRequired
  /// The session must first give the second factor.
  case secondFactorRequired
  /// The operation needs a proof that is at most so old (RFC 9470).
  case freshProofRequired(maximumAge: Duration)
  /// Another app instance is bound to the device or the session.
  case boundElsewhere
  /// The session belongs to another user, or has not the right.
  case forbidden
  case deviceNotEnrolled
  /// The device id belongs to someone, who is not the caller.
  case deviceExists
  case tooManyDevices(limit: Int)
  case noPhoneNumber
  /// There is no such thing, or it is another's.
  case notFound
  case codeInvalid
  case codeExpired
  case rateLimited(retryAfter: Duration)
  case accountLocked(retryAfter: Duration?)
  case alreadyEnabled
  case notEnabled
  case overloaded(retryAfter: Duration)
}

extension Refusal {
  public init(_ value: InvalidValue) { self = .invalid(value) }
}
