internal import AppAttest
internal import AttestGate
internal import Transport

extension AdmissionClaim {
  /// Creates a claim from an assertion and the client certificate that the handshake verified.
  ///
  /// - Parameter certificate: The client's own certificate, if it has one; never that of a proxy in between.
  init(_ assertion: AssertionClaim, certificate: PeerCertificate?) {
    self.init(
      assertion: assertion,
      certificate: certificate.map {
        VerifiedCertificate(
          fingerprint: $0.fingerprint, subject: $0.subject, expiresAt: $0.expiresAt, authorities: $0.authorities,
          links: $0.links, issuers: $0.issuers)
      })
  }
}

extension AssertionClaim {
  /// Reads the assertion headers of `request`.
  ///
  /// - Parameter emptyIsAbsent: Whether an empty field counts as none, because proxies write the fields that they copy
  ///   even if the client has sent none.
  init(_ request: Request, emptyIsAbsent: Bool = false) {
    self.init { name in
      switch request.headers.only(named: name.rawValue) {
      case .absent: .absent
      case .once("") where emptyIsAbsent: .absent
      case .once(let value): .once(value)
      case .repeated: .repeated
      }
    }
  }

  /// The claimed key, for the log; `nil` if none or several are claimed.
  var claimedKey: KeyHash? {
    guard case .once(let text) = self[.keyID] else { return nil }
    return KeyID(received: text).map(KeyHash.init)
  }
}
