internal import COpenSSL

/// A `STACK_OF(X509)`: OpenSSL's list of certificates. Keeps its certificates alive.
final class CertificateStack {
  private let certificates: [X509Handle]
  private let stack: OpaquePointer

  /// A stack of `certificates`, in their order; `nil` when memory is out.
  init?(_ certificates: [X509Handle]) {
    guard let stack = OPENSSL_sk_new_null() else { return nil }
    self.certificates = certificates
    self.stack = stack
    for certificate in certificates {
      // The stack does not retain certificates; `certificates` keeps them alive.
      guard certificate.withPointer({ OPENSSL_sk_push(stack, UnsafeRawPointer($0)) }) > 0 else { return nil }
    }
  }

  // Frees the list, not the certificates.
  deinit { OPENSSL_sk_free(stack) }

  /// Calls `body` with the stack, which is valid until `body` returns and must not leave it.
  func withPointer<Result, Failure: Error>(
    _ body: (OpaquePointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try withExtendedLifetime(self) { () throws(Failure) in try body(stack) }
  }
}
