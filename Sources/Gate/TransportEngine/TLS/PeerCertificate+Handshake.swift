internal import ByteCoding
internal import COpenSSL
internal import Glibc
internal import Transport

extension PeerCertificate {
  /// Creates the certificate that the peer of `tls` presented and proved to own; `nil` if there is none
  /// or if it was not verified.
  ///
  /// - Parameter configured: The digests of the authorities that the handshake trusted.
  init?(verifiedBy tls: OpaquePointer, trusting configured: Set<[UInt8]>) {
    guard let certificate = SSL_get1_peer_certificate(tls) else { return nil }
    defer { X509_free(certificate) }
    guard SSL_get_verify_result(tls) == X509_V_OK, let chain = SSL_get0_verified_chain(tls) else { return nil }
    var authorities: Set<[UInt8]> = []
    var links: Set<[UInt8]> = []
    var issuers: [UInt32] = []
    var expiresAt = Timestamp(seconds: .max)
    for index in 0..<OPENSSL_sk_num(chain) {
      guard let link = OPENSSL_sk_value(chain, index).map(OpaquePointer.init) else { return nil }
      expiresAt = min(expiresAt, Self.end(of: link))
      guard let issuer = CertificateLink.issuerHash(of: link) else { return nil }
      issuers.append(issuer)
      if let digest = CertificateLink.digest(of: link) { links.insert(digest) }
      if let digest = ServerTLS.digest(of: link), configured.contains(digest) { authorities.insert(digest) }
    }
    // A chain ends at a configured certificate. Without one, nothing could end what this certificate admits.
    guard !authorities.isEmpty else { return nil }
    let length = i2d_X509(certificate, nil)
    guard length > 0 else { return nil }
    var der = [UInt8](repeating: 0, count: Int(length))
    let isEncoded = der.withUnsafeMutableBufferPointer { buffer in
      var target = buffer.baseAddress
      return i2d_X509(certificate, &target) == length
    }
    guard isEncoded, let subject = X509_get_subject_name(certificate).flatMap(CertificateLink.text) else { return nil }
    var digest = [UInt8](repeating: 0, count: 32)
    SHA256(der, der.count, &digest)
    self.init(
      der: der, fingerprint: digest, subject: subject,
      expiresAt: expiresAt, authorities: authorities, links: links, issuers: issuers)
  }

  /// The first second after the validity of `certificate`. A time that cannot be read has passed long ago.
  private static func end(of certificate: OpaquePointer) -> Timestamp {
    guard let last = X509_get0_notAfter(certificate).flatMap(CertificateLink.time) else { return Timestamp(seconds: 0) }
    // `notAfter` belongs to the validity (RFC 5280 section 4.1.2.5).
    return Timestamp(seconds: last.seconds + 1)
  }
}
