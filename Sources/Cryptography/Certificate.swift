public import ByteCoding
internal import COpenSSL

/// An X.509 certificate (RFC 5280), of version 1 or 3, exactly as it was received.
///
/// Being one says nothing about trust: that is `ChainValidator`'s to say.
public final class Certificate: Sendable {
  /// The whole certificate, untouched.
  public let der: [UInt8]
  /// The first instant of its validity.
  public let notBefore: Timestamp
  /// The last instant of its validity.
  public let notAfter: Timestamp
  /// The subject's name as RFC 2253 writes it. Anything may stand in it: text for people and logs.
  public let subject: String
  /// What stands in the certificate, as bytes.
  let fields: CertificateFields
  let handle: X509Handle

  /// Reads one certificate.
  ///
  /// Stricter than OpenSSL where OpenSSL overlooks bytes that no signature covers: lengths are minimal, the algorithm
  /// outside of the signed part is that inside, byte for byte, and nothing follows. No extension occurs twice.
  ///
  /// - Throws: `malformedCertificate`.
  public init(der: [UInt8]) throws(CryptographyError) {
    fields = try CertificateFields(der: der)
    handle = try X509Handle(der: der)
    self.der = der
    guard let notBefore = handle.notBefore, let notAfter = handle.notAfter else {
      throw .malformedCertificate("its validity is no pair of times")
    }
    self.notBefore = notBefore
    self.notAfter = notAfter
    subject = try handle.subject()
  }

  /// SHA-256 of the whole certificate: the name by which it can be pinned.
  public var fingerprint: [UInt8] { SHA256.hash(der) }

  /// The subject's public key in X9.62 form, 65 bytes; `nil` for keys that are not on P-256.
  public var p256PublicKey: [UInt8]? { P256PublicKey.point(inSPKI: fields.subjectPublicKeyInfo) }

  /// What is inside the OCTET STRING of the extension `oid` (dotted arcs); `nil` if the certificate lacks it.
  public func extensionValue(oid: String) -> [UInt8]? {
    guard let identifier = ObjectIdentifier(oid) else { return nil }
    return fields.extensions.first { $0.identifier == identifier }.map { Array($0.value) }
  }

  /// The serial number, big-endian, as in the certificate.
  public var serialNumber: [UInt8] { Array(fields.serialNumber) }
}

extension Certificate: Hashable {
  public static func == (first: Certificate, second: Certificate) -> Bool { first.der == second.der }
  public func hash(into hasher: inout Hasher) { hasher.combine(der) }
}
