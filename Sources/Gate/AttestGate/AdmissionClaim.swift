/// What someone brings to be let in.
public struct AdmissionClaim: Sendable, Hashable {
  public let assertion: AssertionClaim
  /// Only a certificate that the TLS handshake verified; one in a header field proves nothing.
  public let certificate: VerifiedCertificate?

  public init(assertion: AssertionClaim, certificate: VerifiedCertificate?) {
    self.assertion = assertion
    self.certificate = certificate
  }
}

/// The three parts of an assertion as they came, unread.
public struct AssertionClaim: Sendable, Hashable {
  /// One part: there may be none, one, or more than one, which is as bad as a wrong one.
  public enum Part: Sendable, Hashable {
    case absent
    case once(String)
    case repeated
  }

  public enum Name: String, Sendable, Hashable, CaseIterable {
    case keyID = "X-App-Assert-KeyId"
    case data = "X-App-Assert-Data"
    case nonce = "X-App-Assert-Nonce"
  }

  private let keyID: Part
  private let data: Part
  private let nonce: Part

  /// Asks for each part by its name.
  public init(_ part: (Name) -> Part) {
    (keyID, data, nonce) = (part(.keyID), part(.data), part(.nonce))
  }

  public subscript(name: Name) -> Part {
    switch name {
    case .keyID: keyID
    case .data: data
    case .nonce: nonce
    }
  }

  /// Whether no part came at all. Anything else is a claim, to be proved or refused.
  public var isAbsent: Bool { keyID == .absent && data == .absent && nonce == .absent }

  /// The part's only value.
  func value(of name: Name) throws(Denial) -> String {
    switch self[name] {
    case .once(let value): return value
    case .absent: throw .partMissing(name)
    case .repeated: throw .partRepeated(name)
    }
  }
}

/// A client certificate that the TLS handshake verified against the configured authority.
public struct VerifiedCertificate: Sendable, Hashable {
  /// SHA-256 of the certificate, 32 bytes.
  public let fingerprint: [UInt8]
  /// The subject as RFC 2253 writes it.
  public let subject: String

  public init(fingerprint: [UInt8], subject: String) {
    self.fingerprint = fingerprint
    self.subject = subject
  }
}
