internal import AttestGate

extension RequestRefusal {
  /// Whether a proof was verified before this was said. Who is refused so has had the gate work for nothing, and could
  /// have it work again with the next request; so the connection ends, and the next attempt costs a handshake.
  var followsVerification: Bool {
    switch self {
    case .denied(let denial): denial.followsVerification
    // A key counts once it is proved.
    case .rateLimited(.upgradesPerKey, _): true
    case .rateLimited, .malformedRegistration, .foreignOrigin, .notFound, .methodNotAllowed, .upgradeRequired,
      .malformedRequest, .upstreamUnavailable, .tooManySessions:
      false
    }
  }
}

extension Denial {
  /// Whether a signature was verified first. An unknown key costs as much work as a known one.
  var followsVerification: Bool {
    switch self {
    case .unknownKey, .assertionRefused, .nonceUsed, .counterReplayed, .keyRevoked, .appNotServed, .environmentRefused,
      .categoryRefused:
      true
    case .noCredentials, .partMissing, .partRepeated, .partMalformed, .valueMalformed, .nonceMalformed, .nonceRefused,
      .assertionMalformed, .certificateRefused, .notConfigured:
      false
    // Registrations have a lane of their own, off the event loops.
    case .attestationRefused, .receiptNotFresh, .keyExists, .tooManyRegistrations: false
    // The fault is the gate's own: new connections would not help.
    case .storeUnavailable: false
    }
  }
}
