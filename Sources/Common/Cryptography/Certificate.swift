public import ByteCoding
internal import COpenSSL

/// An X.509 certificate (RFC 5280) of version 1 or 3, with its bytes unchanged.
///
/// It is not verified: `ChainValidator` checks trust, the key and the extensions.
public final class Certificate: Sendable {
  /// The whole certificate, untouched.
  public let der: [UInt8]
  /// The parts of the certificate, as bytes.
  let fields: CertificateFields

  /// Parses the frame of one certificate.
  ///
  /// Stricter than OpenSSL, which ignores some bytes that no signature covers: lengths are minimal, the algorithm
  /// outside the signed part equals the one inside byte for byte, and no bytes follow. No extension occurs twice, and
  /// there are at most 64.
  ///
  /// - Throws: `malformedCertificate`.
  public init(der: [UInt8]) throws(CryptographyError) {
    fields = try CertificateFields(der: der)
    self.der = der
  }

  /// Parses a certificate that a device wrote for a key of its own, for a protocol in which neither its dates nor its
  /// version count: those of devices are at times wrong. Everything else is as strict as in `init(der:)`.
  ///
  /// Dates that cannot be read make `hasReadableValidity` false. The certificate is then valid at no instant.
  ///
  /// - Throws: `malformedCertificate`.
  public init(ofDevice der: [UInt8]) throws(CryptographyError) {
    fields = try CertificateFields(der: der, isOfDevice: true)
    self.der = der
  }

  /// Whether the dates were read. `init(der:)` reads them always.
  public var hasReadableValidity: Bool { fields.hasReadableValidity }

  /// The first instant of its validity.
  public var notBefore: Timestamp { fields.notBefore }

  /// The last instant of its validity.
  public var notAfter: Timestamp { fields.notAfter }

  /// The serial number, big-endian, as in the certificate.
  public var serialNumber: [UInt8] { Array(fields.serialNumber) }

  /// SHA-256 of the whole certificate: the name by which it can be pinned.
  public var fingerprint: [UInt8] { SHA256.hash(der) }

  /// The subject's public key in X9.62 form, 65 bytes; `nil` for keys that are not on P-256.
  public var p256PublicKey: [UInt8]? { P256PublicKey.point(inSPKI: fields.subjectPublicKeyInfo) }

  /// Returns the content of the OCTET STRING of the extension `oid` (dotted arcs); `nil` if the certificate does not
  /// have it.
  public func extensionValue(oid: String) -> [UInt8]? {
    guard let identifier = ObjectIdentifier(oid) else { return nil }
    return fields.extensions.first { $0.identifier == identifier }.map { Array($0.value) }
  }

  /// The name of the subject in the form of RFC 2253. It may contain any text: only for display and logs.
  public var subject: String {
    // RFC 2253 section 2.4 has this form for values without a text form.
    NameText.rfc2253(fields.subject) ?? "#" + Hex.encode(fields.subject)
  }
}

extension Certificate: Hashable {
  public static func == (first: Certificate, second: Certificate) -> Bool { first.der == second.der }
  public func hash(into hasher: inout Hasher) { hasher.combine(der) }
}

/// A `Name` (RFC 5280 section 4.1.2.4) as text.
private enum NameText {
  static func rfc2253(_ encoding: ArraySlice<UInt8>) -> String? {
    OpenSSLErrors.clear()
    defer { OpenSSLErrors.clear() }
    let name = encoding.withUnsafeBufferPointer { bytes in
      var cursor = bytes.baseAddress
      return d2i_X509_NAME(nil, &cursor, bytes.count)
    }
    defer { X509_NAME_free(name) }
    guard let name, let target = try? MemoryBIO(),
      target.withPointer({ X509_NAME_print_ex($0, name, 0, sallyport_rfc2253_flags()) }) >= 0
    else { return nil }
    return String(decoding: target.take(), as: UTF8.self)
  }
}
