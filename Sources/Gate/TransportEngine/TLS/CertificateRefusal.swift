internal import COpenSSL

/// Why a handshake rejected a client certificate; stored with the connection until it is read.
///
/// OpenSSL's own error only says that verification failed, and does not keep the certificate.
final class CertificateRefusal {
  /// OpenSSL's description, such as `certificate has expired`.
  let reason: String
  /// The common name in the certificate, for the log only: the client has proved nothing. ASCII, other characters
  /// escaped, at most 64 characters.
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
    // A character has at most four bytes, so 260 bytes always contain the 64 characters that are kept.
    let start = String(decoding: UnsafeBufferPointer(start: text, count: min(Int(count), 260)), as: UTF8.self)
    return start.unicodeScalars.prefix(64).map { $0.escaped(asASCII: true) }.joined()
  }

  /// Makes handshakes of `context` ask for a certificate and record why one is rejected.
  static func askForCertificates(in context: OpaquePointer) {
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, noteRefusal)
  }

  /// Returns the rejection that the handshake of `tls` recorded; `nil` if there is none.
  static func of(_ tls: OpaquePointer) -> CertificateRefusal? {
    SSL_get_ex_data(tls, index).map { Unmanaged<CertificateRefusal>.fromOpaque($0).takeUnretainedValue() }
  }

  fileprivate func keep(in tls: OpaquePointer) {
    guard SSL_get_ex_data(tls, Self.index) == nil else { return }
    let refusal = Unmanaged.passRetained(self)
    if SSL_set_ex_data(tls, Self.index, refusal.toOpaque()) != 1 { refusal.release() }
  }

  /// The index at which a connection stores its rejection. The rejection is released with the connection.
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
