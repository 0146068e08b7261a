internal import COpenSSL

extension ServerTLS {
  /// The certificates that clients are shown, DER: the first one, then the further ones in their order. They are as
  /// read at start or reload; later changes of the files do not appear.
  public var certificates: [[UInt8]] {
    withContext { context in
      ([context] + CertificateChoice.further(beside: context)).map { Self.encoding(of: SSL_CTX_get0_certificate($0)) }
    }
  }

  /// The authorities that verify client certificates, DER, unordered.
  public var authorityCertificates: [[UInt8]] {
    withContext { context in
      guard let store = SSL_CTX_get_cert_store(context), let objects = X509_STORE_get0_objects(store) else { return [] }
      return (0..<OPENSSL_sk_num(objects)).compactMap { index in
        guard let object = OPENSSL_sk_value(objects, index),
          let certificate = X509_OBJECT_get0_X509(OpaquePointer(object))
        else { return nil }
        return Self.encoding(of: certificate)
      }
    }
  }

  /// Returns the DER encoding; empty if memory is exhausted.
  private static func encoding(of certificate: OpaquePointer?) -> [UInt8] {
    guard let certificate else { return [] }
    let count = i2d_X509(certificate, nil)
    guard count > 0 else { return [] }
    return [UInt8](unsafeUninitializedCapacity: Int(count)) { buffer, initialized in
      var cursor = buffer.baseAddress
      initialized = Int(max(0, i2d_X509(certificate, &cursor)))
    }
  }
}
