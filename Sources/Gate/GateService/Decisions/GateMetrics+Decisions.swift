internal import AttestGate

extension RequestRefusal {
  /// Whether the key that the request named was proved before the refusal.
  var provesKey: Bool {
    switch self {
    case .denied(let denial): denial.provesKey
    case .rateLimited(let limit, _): limit == .upgradesPerKey
    case .tooManySessionsOfKey: true
    case .malformedRegistration, .tokenRefused, .foreignOrigin, .foreignUpgrade, .notFound, .methodNotAllowed,
      .upgradeRequired, .malformedRequest, .upstreamUnavailable, .tooManySessions, .undecided:
      false
    }
  }
}

extension GateMetrics {
  /// Lists a refusal, and keeps it for the page of its key.
  ///
  /// - Parameters:
  ///   - status: `nil` if monitor mode admitted the client.
  ///   - provesKey: Whether the request had a valid signature of the key.
  func note(_ report: RefusalReport, status: Int?, _ subject: RefusalLog.Subject, provesKey: Bool) {
    decisions.note(refusalLog.note(report, status: status, subject), from: subject.address, provesKey: provesKey)
  }

  /// Does the same for an upstream that refused the opening handshake of a client which the gate had admitted.
  func noteUpstreamRefusal(status: Int, step: String, _ subject: RefusalLog.Subject) {
    let entry = refusalLog.noteUpstreamRefusal(status: status, step: step, subject)
    decisions.note(entry, from: subject.address, provesKey: true)
  }
}
