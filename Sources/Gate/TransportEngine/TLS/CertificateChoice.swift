internal import COpenSSL

/// Chooses the listener's certificate for the name that a client asks for (SNI, RFC 6066 section 3). An
/// exact name comes before a wildcard, an earlier certificate before a later one. Without a name or a match,
/// the client gets the first.
final class CertificateChoice {
  // `first` owns this choice, so it is not retained here; the others are. As in ServerTLS, shared
  // once `init` has set them up.
  private let first: OpaquePointer
  private let further: [OpaquePointer]

  /// Takes ownership of the references to `further`.
  private init(first: OpaquePointer, further: [OpaquePointer]) {
    self.first = first
    self.further = further
  }

  deinit { for context in further { SSL_CTX_free(context) } }

  /// Makes connections of `first` choose among it and `further`; takes ownership of the references to `further`.
  /// Handshakes in progress keep the choice and its certificates alive.
  ///
  /// - Returns: `false` if memory is exhausted; there is no choice then.
  static func install(in first: OpaquePointer, further: [OpaquePointer]) -> Bool {
    let choice = Unmanaged.passRetained(CertificateChoice(first: first, further: further)).toOpaque()
    guard SSL_CTX_set_ex_data(first, index, choice) == 1 else {
      Unmanaged<CertificateChoice>.fromOpaque(choice).release()
      return false
    }
    sallyport_SSL_CTX_set_servername(first, chooseCertificate, choice)
    return true
  }

  /// Returns the certificates that `first` chooses from in addition to its own. They live as long as `first`.
  static func further(beside first: OpaquePointer) -> [OpaquePointer] {
    guard let choice = SSL_CTX_get_ex_data(first, index) else { return [] }
    return Unmanaged<CertificateChoice>.fromOpaque(choice).takeUnretainedValue().further
  }

  /// The index at which a context stores its choice. The choice is released with the context.
  private static let index = sallyport_SSL_CTX_new_index { _, choice, _, _, _, _ in
    if let choice { Unmanaged<CertificateChoice>.fromOpaque(choice).release() }
  }

  /// Returns the context whose certificate matches `name`; `nil` if none does.
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
