public import ByteCoding

/// The credentials that a client presents when it opens a connection.
public struct AdmissionClaim: Sendable, Hashable {
  public let assertion: AssertionClaim
  /// The certificate that the TLS handshake verified, or `nil`. A certificate in a header is never accepted.
  public let certificate: VerifiedCertificate?

  public init(assertion: AssertionClaim, certificate: VerifiedCertificate?) {
    self.assertion = assertion
    self.certificate = certificate
  }
}

/// The three parts of an assertion as they were received, not yet decoded.
public struct AssertionClaim: Sendable, Hashable {
  /// The values of one header: none, one, or more than one. A repeated header is refused like a wrong value.
  public enum Part: Sendable, Hashable {
    case absent
    case once(String)
    case repeated
    /// What should contain the parts cannot be read; `rule` says which rule it breaks.
    case unreadable(rule: String)
  }

  /// The header that carries a part.
  public enum Name: String, Sendable, Hashable, CaseIterable {
    case keyID = "X-App-Assert-KeyId"
    case data = "X-App-Assert-Data"
    case nonce = "X-App-Assert-Nonce"
  }

  private let keyID: Part
  private let data: Part
  private let nonce: Part

  /// Reads each part by the name of its header.
  public init(_ part: (Name) -> Part) {
    (keyID, data, nonce) = (part(.keyID), part(.data), part(.nonce))
  }

  /// Creates a claim whose parts cannot be read, and that is refused with `rule`.
  public init(unreadable rule: String) { self.init { _ in .unreadable(rule: rule) } }

  public subscript(name: Name) -> Part {
    switch name {
    case .keyID: keyID
    case .data: data
    case .nonce: nonce
    }
  }

  /// Whether none of the three parts was sent. If any part was sent, the claim has to be verified.
  public var isAbsent: Bool { keyID == .absent && data == .absent && nonce == .absent }

  /// Returns the part's only value.
  ///
  /// - Throws: `.partMissing`, `.partRepeated` or `.partsUnreadable`.
  public func value(of name: Name) throws(Denial) -> String {
    switch self[name] {
    case .once(let value): return value
    case .absent: throw .partMissing(name)
    case .repeated: throw .partRepeated(name)
    case .unreadable(let rule): throw .partsUnreadable(rule: rule)
    }
  }
}

/// A client certificate that the TLS handshake verified against the configured authority.
public struct VerifiedCertificate: Sendable, Hashable {
  /// The SHA-256 of the certificate's DER, 32 bytes.
  public let fingerprint: [UInt8]
  /// The subject in the string form of RFC 2253.
  public let subject: String
  /// When the certificate, or one of the chain that verified it, expires.
  public let expiresAt: Timestamp
  /// The SHA-256 digests of the configured certificates in that chain.
  public let authorities: Set<[UInt8]>
  /// Digests of issuer and serial number of the certificates in that chain, as in the lists of revoked ones.
  public let links: Set<[UInt8]>
  /// Hashes of the issuers of the certificates in that chain, that of this certificate first.
  public let issuers: [UInt32]

  public init(
    fingerprint: [UInt8], subject: String, expiresAt: Timestamp, authorities: Set<[UInt8]>, links: Set<[UInt8]> = [],
    issuers: [UInt32] = []
  ) {
    self.links = links
    self.issuers = issuers
    self.fingerprint = fingerprint
    self.subject = subject
    self.expiresAt = expiresAt
    self.authorities = authorities
  }
}
