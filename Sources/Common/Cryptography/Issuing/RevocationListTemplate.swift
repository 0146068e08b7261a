public import ByteCoding
internal import COpenSSL
internal import Glibc

/// The content of a new list of revoked certificates (RFC 5280 section 5). Signing it makes the list.
public struct RevocationListTemplate: Sendable {
  /// One revoked certificate.
  public struct Entry: Sendable, Hashable {
    /// Big-endian, positive.
    public let serialNumber: [UInt8]
    public let revokedAt: Timestamp

    public init(serialNumber: [UInt8], revokedAt: Timestamp) {
      // Without leading zeros, so that one number has one form.
      self.serialNumber = Array(serialNumber.drop { $0 == 0 })
      self.revokedAt = revokedAt
    }
  }

  /// In the order of the list.
  public var entries: [Entry]
  /// The number of the list, which increases with each one of an issuer.
  public var number: UInt64
  /// When the list was made. Fractions of a second are dropped.
  public var thisUpdate: Timestamp
  /// When the next one is due; verifiers refuse the list from then on.
  public var nextUpdate: Timestamp

  public init(entries: [Entry], number: UInt64, thisUpdate: Timestamp, nextUpdate: Timestamp) {
    self.entries = entries
    self.number = number
    self.thisUpdate = thisUpdate
    self.nextUpdate = nextUpdate
  }

  /// Reads the entries and the number of a list in PEM.
  ///
  /// - Throws: `malformedPEM` if it holds no list that OpenSSL can parse.
  public init(pem: String) throws(CryptographyError) {
    let source = try MemoryBIO(reading: Array(pem.utf8))
    OpenSSLErrors.clear()
    guard let list = source.withPointer({ PEM_read_bio_X509_CRL($0, nil, nil, nil) }) else {
      throw .malformedPEM(OpenSSLErrors.take())
    }
    defer { X509_CRL_free(list) }
    var entries: [Entry] = []
    if let revoked = X509_CRL_get_REVOKED(list) {
      for index in 0..<OPENSSL_sk_num(revoked) {
        guard let entry = OPENSSL_sk_value(revoked, index).map(OpaquePointer.init),
          let serial = X509_REVOKED_get0_serialNumber(entry), let date = X509_REVOKED_get0_revocationDate(entry)
        else { continue }
        entries.append(Entry(serialNumber: Self.magnitude(of: serial), revokedAt: Self.instant(of: date)))
      }
    }
    self.init(
      entries: entries, number: Self.number(of: list),
      thisUpdate: X509_CRL_get0_lastUpdate(list).map(Self.instant) ?? Timestamp(seconds: 0),
      nextUpdate: X509_CRL_get0_nextUpdate(list).map(Self.instant) ?? Timestamp(seconds: 0))
  }

  /// The list as one PEM block, signed by `issuer` with its private key `key`.
  public func signed(by issuer: Certificate, key: ECPrivateKey) throws(CryptographyError) -> String {
    let digest = key.curve.digest
    let body = DER.sequence(
      DER.integer(1), digest.signatureAlgorithm, Array(issuer.fields.subject), DER.time(thisUpdate),
      DER.time(nextUpdate),
      entries.isEmpty
        ? []
        : DER.sequence(
          of: entries.map { DER.sequence(DER.integer(magnitude: $0.serialNumber), DER.time($0.revokedAt)) }),
      DER.context(0, DER.sequence(of: extensions(issuer).map(\.encoded))))
    let signature = try key.signature(for: body, digest: digest)
    return try MemoryBIO.pem(
      "X509 CRL", DER.sequence(body, digest.signatureAlgorithm, DER.bitString(signature)))
  }

  private static func magnitude(of serial: UnsafePointer<ASN1_INTEGER>) -> [UInt8] {
    guard let data = ASN1_STRING_get0_data(serial) else { return [] }
    return Array(UnsafeBufferPointer(start: data, count: Int(max(0, ASN1_STRING_length(serial)))))
  }

  private static func instant(of time: UnsafePointer<ASN1_TIME>) -> Timestamp {
    var parts = tm()
    return Timestamp(seconds: ASN1_TIME_to_tm(time, &parts) == 1 ? Int64(timegm(&parts)) : 0)
  }

  /// The number of a list; 0 if it has none, or one beyond 63 bits.
  private static func number(of list: OpaquePointer) -> UInt64 {
    guard let number = X509_CRL_get_ext_d2i(list, NID_crl_number, nil, nil) else { return 0 }
    let integer = number.assumingMemoryBound(to: ASN1_INTEGER.self)
    defer { ASN1_INTEGER_free(integer) }
    return UInt64(max(0, ASN1_INTEGER_get(integer)))
  }

  /// Those that section 5.2 requires: the key of the issuer, if its certificate names it, and the number.
  private func extensions(_ issuer: Certificate) -> [CertificateExtension] {
    let number = CertificateExtension(.listNumber, value: DER.integer(number))
    guard let identifier = issuer.subjectKeyIdentifier else { return [number] }
    return [.authorityKeyIdentifier(identifier), number]
  }
}
