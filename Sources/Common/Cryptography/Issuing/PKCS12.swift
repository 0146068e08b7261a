internal import COpenSSL

/// A private key, its certificate and the certificates above it in one file under a password (RFC 7292).
public struct PKCS12: Sendable {
  /// The algorithms that protect the file.
  public enum Encryption: Sendable, Hashable, CaseIterable {
    /// AES-256 and SHA-256 (RFC 8018), which OpenSSL 3 writes and iOS and macOS have read since 2022.
    case modern
    /// Triple DES and SHA-1, for readers that support nothing else.
    case legacy
  }

  /// The certificate of the key.
  public var certificate: Certificate
  /// The private key.
  public var key: ECPrivateKey
  /// In any order, without `certificate`.
  public var authorities: [Certificate]
  /// The name of the entry in a key chain.
  public var friendlyName: String

  /// Creates the content of a file.
  public init(certificate: Certificate, key: ECPrivateKey, authorities: [Certificate], friendlyName: String) {
    self.certificate = certificate
    self.key = key
    self.authorities = authorities
    self.friendlyName = friendlyName
  }

  // OpenSSL's default number of rounds for legacy files. More rounds do not protect a short password.
  private static let rounds: Int32 = 2048

  /// The file, encrypted with `password`, which may be empty and has no NUL in it.
  public func encoded(password: String, encryption: Encryption) throws(CryptographyError) -> [UInt8] {
    OpenSSLErrors.clear()
    let handles = try authorities.map { authority throws(CryptographyError) in try X509Handle(authority) }
    let own = try X509Handle(certificate)
    guard let others = CertificateStack(handles) else { throw Self.failure() }
    let cipher = encryption == .modern ? 0 : NID_pbe_WithSHA1And3_Key_TripleDES_CBC
    // The MAC is created below, with the digest that belongs to the cipher.
    let file = key.key.withPointer { key in
      own.withPointer { own in
        others.withPointer { others in
          PKCS12_create(password, friendlyName, key, own, others, cipher, cipher, Self.rounds, -1, 0)
        }
      }
    }
    guard let file else { throw Self.failure() }
    defer { PKCS12_free(file) }
    let digest = encryption == .modern ? EVP_sha256() : EVP_sha1()
    let target = try MemoryBIO()
    guard PKCS12_set_mac(file, password, -1, nil, 0, Self.rounds, digest) == 1,
      target.withPointer({ i2d_PKCS12_bio($0, file) }) == 1
    else { throw Self.failure() }
    return target.take()
  }

  private static func failure() -> CryptographyError {
    .operationFailed("PKCS #12 encoding", reason: OpenSSLErrors.take())
  }
}
