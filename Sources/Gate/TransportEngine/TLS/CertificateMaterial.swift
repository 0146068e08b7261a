internal import COpenSSL

/// A certificate with its chain and its key, in memory.
public struct CertificateMaterial: Sendable, Hashable {
  /// PEM: the server's certificate first, then its chain.
  public let chainPEM: String
  /// PEM, not encrypted. A secret.
  public let keyPEM: String

  public init(chainPEM: String, keyPEM: String) { (self.chainPEM, self.keyPEM) = (chainPEM, keyPEM) }
}

extension CertificateMaterial: CustomReflectable, CustomStringConvertible {
  /// Keys do not appear in logs.
  public var description: String { "a certificate with its key" }
  public var customMirror: Mirror { Mirror(self, children: []) }
}

extension ServerTLS {
  /// Makes `context` present the certificate of `material`.
  static func load(_ material: CertificateMaterial, into context: OpaquePointer) throws(SetupError) {
    let blocks = certificates(in: material.chainPEM)
    defer { for certificate in blocks { X509_free(certificate) } }
    let unusable = "holds no usable certificate"
    guard let leaf = blocks.first, SSL_CTX_use_certificate(context, leaf) == 1 else {
      throw SetupError(file: "-", reason: OpenSSLError(unusable).description)
    }
    for issuer in blocks.dropFirst() {
      guard sallyport_SSL_CTX_add1_chain_cert(context, issuer) == 1 else {
        throw SetupError(file: "-", reason: OpenSSLError(unusable).description)
      }
    }
    guard let key = key(in: material.keyPEM) else {
      throw SetupError(file: "-", reason: OpenSSLError("holds no usable private key").description)
    }
    defer { EVP_PKEY_free(key) }
    guard SSL_CTX_use_PrivateKey(context, key) == 1, SSL_CTX_check_private_key(context) == 1 else {
      throw SetupError(file: "-", reason: OpenSSLError("the key is not that of the certificate").description)
    }
    ERR_clear_error()
  }

  /// Returns the certificates, each with a reference of the caller.
  private static func certificates(in pem: String) -> [OpaquePointer] {
    withMemory(pem) { bio in
      var certificates: [OpaquePointer] = []
      while let certificate = PEM_read_bio_X509(bio, nil, noPassphrase, nil) { certificates.append(certificate) }
      // The end of the text is an error, too.
      ERR_clear_error()
      return certificates
    } ?? []
  }

  private static func key(in pem: String) -> OpaquePointer? {
    withMemory(pem) { PEM_read_bio_PrivateKey($0, nil, noPassphrase, nil) } ?? nil
  }

  private static func withMemory<Value>(_ text: String, _ body: (OpaquePointer) -> Value) -> Value? {
    let bytes = Array(text.utf8)
    return bytes.withUnsafeBytes { buffer in
      guard let bio = BIO_new_mem_buf(buffer.baseAddress, Int32(buffer.count)) else { return nil }
      defer { BIO_free(bio) }
      return body(bio)
    }
  }
}

/// Without a callback OpenSSL would ask the terminal for the passphrase of an encrypted key, and wait.
private let noPassphrase:
  @convention(c) (UnsafeMutablePointer<CChar>?, Int32, Int32, UnsafeMutableRawPointer?) -> Int32 =
    { _, _, _, _ in -1 }
