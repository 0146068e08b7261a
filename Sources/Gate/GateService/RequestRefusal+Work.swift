internal import AttestGate

extension RequestRefusal {
  /// Whether the gate verified a proof before this refusal.
  ///
  /// Such a request has cost the gate work, and the client could repeat it at once. So the gate closes the
  /// connection, and the next attempt costs the client a handshake.
  var followsVerification: Bool {
    switch self {
    case .denied(let denial): denial.followsVerification
    // This limit is checked after the key is proved.
    case .rateLimited(.upgradesPerKey, _): true
    case .rateLimited, .malformedRegistration, .foreignOrigin, .notFound, .methodNotAllowed, .upgradeRequired,
      .malformedRequest, .upstreamUnavailable, .tooManySessions:
      false
    }
  }
}

extension Denial {
  /// Whether a signature was verified first. An unknown key costs as much: the gate verifies with a decoy key.
  var followsVerification: Bool {
    switch self {
    case .unknownKey, .assertionRefused, .nonceUsed, .counterReplayed, .keyRevoked, .appNotServed, .environmentRefused,
      .categoryRefused:
      true
    case .noCredentials, .partMissing, .partRepeated, .partMalformed, .valueMalformed, .nonceMalformed, .nonceRefused,
      .assertionMalformed, .certificateRefused, .notConfigured:
      false
    // Registrations have their own concurrency limiter, off the event loops.
    case .attestationRefused, .receiptNotFresh, .keyExists, .tooManyRegistrations: false
    // The failure is the gate's own: new connections from all clients would make it worse.
    case .storeUnavailable: false
    }
  }
}
