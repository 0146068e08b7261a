internal import COpenSSL

/// An `X509`: a certificate as OpenSSL knows it, which reads more of it than `Certificate` does, the key above all.
///
/// The object is never changed after it was made; what OpenSSL caches in it, it caches under a lock of its own.
final class X509Handle: @unchecked Sendable {
  let certificate: Certificate
  let pointer: OpaquePointer

  /// - Throws: `malformedCertificate` for what OpenSSL cannot read.
  init(_ certificate: Certificate) throws(CryptographyError) {
    OpenSSLErrors.clear()
    let parsed = certificate.der.withUnsafeBufferPointer { bytes in
      var cursor = bytes.baseAddress
      return d2i_X509(nil, &cursor, bytes.count)
    }
    guard let parsed else { throw .malformedCertificate(OpenSSLErrors.take()) }
    self.certificate = certificate
    pointer = parsed
  }

  deinit { X509_free(pointer) }
}
