internal import COpenSSL

/// Why a handshake did not accept a client's certificate, kept with the connection until it is asked for.
///
/// OpenSSL's own error says only that verification failed, and does not keep the certificate.
final class CertificateRefusal {
  /// OpenSSL's words: `certificate has expired`.
  let reason: String
  /// The common name that the certificate gives its owner, who has proved nothing: for the log. ASCII, anything else
  /// escaped, and cut off behind 64 characters.
  let commonName: String?

  fileprivate init(_ verification: OpaquePointer) {
    reason = String(cString: X509_verify_cert_error_string(Int(X509_STORE_CTX_get_error(verification))))
    commonName = X509_STORE_CTX_get0_cert(verification).flatMap(Self.commonName)
  }

  private static func commonName(of certificate: OpaquePointer) -> String? {
    guard let subject = X509_get_subject_name(certificate) else { return nil }
    let index = X509_NAME_get_index_by_NID(subject, NID_commonName, -1)
    guard index >= 0, let value = X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, index)) else { return nil }
    var text: UnsafeMutablePointer<UInt8>?
    let count = ASN1_STRING_to_UTF8(&text, value)
    guard count >= 0, let text else {
      ERR_clear_error()
      return nil
    }
    defer { sallyport_free(text) }
    // No character has more than four bytes: what is shown does not depend on where this is cut.
    let start = String(decoding: UnsafeBufferPointer(start: text, count: min(Int(count), 260)), as: UTF8.self)
    return start.unicodeScalars.prefix(64).map { $0.escaped(asASCII: true) }.joined()
  }

  /// Has handshakes of `context` ask for a certificate, and keep why one was refused.
  static func askForCertificates(in context: OpaquePointer) {
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, noteRefusal)
  }

  /// What was kept of the handshake of `tls`.
  static func of(_ tls: OpaquePointer) -> CertificateRefusal? {
    SSL_get_ex_data(tls, index).map { Unmanaged<CertificateRefusal>.fromOpaque($0).takeUnretainedValue() }
  }

  fileprivate func keep(in tls: OpaquePointer) {
    guard SSL_get_ex_data(tls, Self.index) == nil else { return }
    let refusal = Unmanaged.passRetained(self)
    if SSL_set_ex_data(tls, Self.index, refusal.toOpaque()) != 1 { refusal.release() }
  }

  /// Where a connection keeps it, which ends with the connection.
  private static let index = sallyport_SSL_new_index { _, refusal, _, _, _, _ in
    if let refusal { Unmanaged<CertificateRefusal>.fromOpaque(refusal).release() }
  }
}

private func noteRefusal(isGood: Int32, verification: OpaquePointer?) -> Int32 {
  guard isGood == 0, let verification,
    let tls = X509_STORE_CTX_get_ex_data(verification, SSL_get_ex_data_X509_STORE_CTX_idx())
  else { return isGood }
  CertificateRefusal(verification).keep(in: OpaquePointer(tls))
  return 0
}
