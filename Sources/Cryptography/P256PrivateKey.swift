internal import COpenSSL

/// A private key on P-256.
public final class P256PrivateKey: Sendable {
  public let publicKey: P256PublicKey
  let key: PKey

  /// A new key.
  public convenience init() throws(CryptographyError) {
    OpenSSLErrors.clear()
    guard let handle = sallyport_generate_p256() else {
      throw .operationFailed("key generation", reason: OpenSSLErrors.take())
    }
    try self.init(key: PKey(owning: handle))
  }

  /// The first private key in `pkcs8PEM`: PKCS #8 without encryption (RFC 5208), as `openssl genpkey` writes it.
  public convenience init(pkcs8PEM: String) throws(CryptographyError) {
    let source = try MemoryBIO(reading: Array(pkcs8PEM.utf8))
    // Without a callback OpenSSL would ask the terminal for the passphrase of an encrypted key.
    let noPassphrase: @convention(c) (UnsafeMutablePointer<CChar>?, Int32, Int32, UnsafeMutableRawPointer?) -> Int32 = {
      _, _, _, _ in -1
    }
    guard let handle = PEM_read_bio_PrivateKey(source.handle, nil, noPassphrase, nil) else {
      throw .malformedPrivateKey(OpenSSLErrors.take())
    }
    try self.init(key: PKey(owning: handle))
  }

  /// The key in `pkcs8DER`: PKCS #8 without encryption, and nothing behind it.
  public convenience init(pkcs8DER: [UInt8]) throws(CryptographyError) {
    OpenSSLErrors.clear()
    let parsed = pkcs8DER.withUnsafeBufferPointer { bytes -> (info: OpaquePointer?, rest: Int) in
      var cursor = bytes.baseAddress
      let info = d2i_PKCS8_PRIV_KEY_INFO(nil, &cursor, bytes.count)
      return (info, bytes.count - (cursor.map { $0 - (bytes.baseAddress ?? $0) } ?? 0))
    }
    defer { PKCS8_PRIV_KEY_INFO_free(parsed.info) }
    guard parsed.info != nil, parsed.rest == 0, let handle = EVP_PKCS82PKEY(parsed.info) else {
      throw .malformedPrivateKey(parsed.rest == 0 ? OpenSSLErrors.take() : "not one whole PKCS #8 structure")
    }
    try self.init(key: PKey(owning: handle))
  }

  init(key: PKey) throws(CryptographyError) {
    self.key = key
    do throws(CryptographyError) {
      publicKey = try P256PublicKey(spki: try Self.spki(of: key))
    } catch {
      throw .malformedPrivateKey("not a key on P-256")
    }
  }

  /// An ECDSA signature of `message`, which is hashed here with SHA-256, in DER: 70 to 72 bytes, seldom fewer.
  public func signature(for message: [UInt8]) throws(CryptographyError) -> [UInt8] {
    try key.signature(for: message, digest: .sha256)
  }

  /// The key in PKCS #8 without encryption. A secret: for a file with mode 0600, never for a log.
  public var pkcs8DER: [UInt8] {
    get throws(CryptographyError) {
      let target = try MemoryBIO()
      let info = EVP_PKEY2PKCS8(key.handle)
      defer { PKCS8_PRIV_KEY_INFO_free(info) }
      guard info != nil, i2d_PKCS8_PRIV_KEY_INFO_bio(target.handle, info) == 1 else {
        throw .operationFailed("PKCS #8 encoding", reason: OpenSSLErrors.take())
      }
      return target.take()
    }
  }

  /// `pkcs8DER` as PEM: `-----BEGIN PRIVATE KEY-----`.
  public var pkcs8PEM: String {
    get throws(CryptographyError) {
      let target = try MemoryBIO()
      guard PEM_write_bio_PKCS8PrivateKey(target.handle, key.handle, nil, nil, 0, nil, nil) == 1 else {
        throw .operationFailed("PKCS #8 encoding", reason: OpenSSLErrors.take())
      }
      return String(decoding: target.take(), as: UTF8.self)
    }
  }

  private static func spki(of key: PKey) throws(CryptographyError) -> [UInt8] {
    let target = try MemoryBIO()
    guard i2d_PUBKEY_bio(target.handle, key.handle) == 1 else {
      throw .operationFailed("public key encoding", reason: OpenSSLErrors.take())
    }
    return target.take()
  }
}
