internal import COpenSSL

/// An `X509`: a certificate parsed by OpenSSL, which parses more of it than `Certificate`, such as the key.
///
/// The object never changes after its creation. OpenSSL protects its internal caches with its own lock.
final class X509Handle: @unchecked Sendable {
  let certificate: Certificate
  private let pointer: OpaquePointer

  /// - Throws: `malformedCertificate` if OpenSSL cannot parse it, or must not (`PublicKeyForm`).
  init(_ certificate: Certificate) throws(CryptographyError) {
    if let fault = PublicKeyForm.fault(of: certificate.fields.subjectPublicKeyInfo) {
      throw .malformedCertificate(fault)
    }
    OpenSSLErrors.clear()
    let parsed = certificate.der.withUnsafeBufferPointer { bytes in
      var cursor = bytes.baseAddress
      return d2i_X509(nil, &cursor, bytes.count)
    }
    guard let parsed else { throw .malformedCertificate(OpenSSLErrors.take()) }
    self.certificate = certificate
    pointer = parsed
  }

  /// Calls `body` with the `X509`, which is valid until `body` returns and must not leave it.
  func withPointer<Result, Failure: Error>(
    _ body: (OpaquePointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try withExtendedLifetime(self) { () throws(Failure) in try body(pointer) }
  }

  /// Whether `other` is this very `X509`.
  func isSame(as other: OpaquePointer?) -> Bool { pointer == other }

  /// Why `issuer` has not signed this certificate, or may not; `nil` if it has and may.
  func signatureFault(under issuer: X509Handle) -> String? {
    OpenSSLErrors.clear()
    defer { OpenSSLErrors.clear() }
    return withPointer { subject in
      issuer.withPointer { issuer in
        let code = X509_check_issued(issuer, subject)
        guard code == X509_V_OK else { return Self.reason(code) }
        guard let key = X509_get0_pubkey(issuer) else {
          return Self.reason(X509_V_ERR_UNABLE_TO_DECODE_ISSUER_PUBLIC_KEY)
        }
        return X509_verify(subject, key) == 1 ? nil : Self.reason(X509_V_ERR_CERT_SIGNATURE_FAILURE)
      }
    }
  }

  /// Why `issuer` may not have issued this certificate, by names, key identifiers, the algorithm of the signature and
  /// the usage of its key; `nil` if it may.
  func issuanceFault(under issuer: X509Handle) -> String? {
    OpenSSLErrors.clear()
    defer { OpenSSLErrors.clear() }
    let code = withPointer { subject in issuer.withPointer { X509_check_issued($0, subject) } }
    return code == X509_V_OK ? nil : Self.reason(code)
  }

  /// Whether OpenSSL cannot read an extension that it knows, or two extensions contradict each other. It then takes the
  /// certificate as one without any extension, and as no issuer and no subject of one.
  var hasUnreadableExtension: Bool {
    withPointer { X509_get_extension_flags($0) } & UInt32(EXFLAG_INVALID) != 0
  }

  private static func reason(_ code: CInt) -> String {
    X509_verify_cert_error_string(Int(code)).map { String(cString: $0) } ?? "error \(code)"
  }

  deinit { X509_free(pointer) }
}
