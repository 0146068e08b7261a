internal import COpenSSL

/// Which of a listener's certificates a client gets: one that is good for the name that it asks for (SNI, RFC 6066
/// section 3), by an exact name before a wildcard, the earlier before the later. A client that asks for none of the
/// names, or for none at all, gets the first.
final class CertificateChoice {
  // The first owns this choice, and so does not belong to it; the others do. As in ServerTLS: shared once set up.
  private let first: OpaquePointer
  private let further: [OpaquePointer]

  /// Takes over the references to `further`.
  private init(first: OpaquePointer, further: [OpaquePointer]) {
    self.first = first
    self.further = further
  }

  deinit { for context in further { SSL_CTX_free(context) } }

  /// Makes connections of `first` choose among it and `further`, whose references are taken over. Connections that
  /// are being opened keep the choice and its certificates, even after all other owners released them.
  ///
  /// - Returns: `false` when memory is exhausted; there is no choice then.
  static func install(in first: OpaquePointer, further: [OpaquePointer]) -> Bool {
    let choice = Unmanaged.passRetained(CertificateChoice(first: first, further: further)).toOpaque()
    guard SSL_CTX_set_ex_data(first, index, choice) == 1 else {
      Unmanaged<CertificateChoice>.fromOpaque(choice).release()
      return false
    }
    sallyport_SSL_CTX_set_servername(first, chooseCertificate, choice)
    return true
  }

  /// The certificates that `first` chooses from besides its own; they live as long as it does.
  static func further(beside first: OpaquePointer) -> [OpaquePointer] {
    guard let choice = SSL_CTX_get_ex_data(first, index) else { return [] }
    return Unmanaged<CertificateChoice>.fromOpaque(choice).takeUnretainedValue().further
  }

  /// Where a context keeps its choice, which ends with it.
  private static let index = sallyport_SSL_CTX_new_index { _, choice, _, _, _, _ in
    if let choice { Unmanaged<CertificateChoice>.fromOpaque(choice).release() }
  }

  /// The context whose certificate is good for `name`, if there is one.
  fileprivate func context(for name: UnsafePointer<CChar>) -> OpaquePointer? {
    let all = [first] + further
    let rules = UInt32(X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS)
    for flags in [rules | UInt32(X509_CHECK_FLAG_NO_WILDCARDS), rules] {
      let match = all.first { X509_check_host(SSL_CTX_get0_certificate($0), name, 0, flags, nil) == 1 }
      if let match { return match }
    }
    return nil
  }
}

private func chooseCertificate(
  ssl: OpaquePointer?, alert: UnsafeMutablePointer<Int32>?, choice: UnsafeMutableRawPointer?
) -> Int32 {
  guard let choice, let name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name),
    let context = Unmanaged<CertificateChoice>.fromOpaque(choice).takeUnretainedValue().context(for: name),
    SSL_set_SSL_CTX(ssl, context) != nil
  else { return SSL_TLSEXT_ERR_NOACK }
  return SSL_TLSEXT_ERR_OK
}
