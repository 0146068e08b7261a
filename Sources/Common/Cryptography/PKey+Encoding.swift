internal import COpenSSL

extension PKey {
  /// The first private key in `pkcs8PEM`: PKCS #8 without encryption (RFC 5208), as `openssl genpkey` writes it.
  convenience init(pkcs8PEM: String) throws(CryptographyError) {
    let source = try MemoryBIO(reading: Array(pkcs8PEM.utf8))
    // Without a callback OpenSSL would prompt on the terminal for the passphrase of an encrypted key.
    let noPassphrase: @convention(c) (UnsafeMutablePointer<CChar>?, Int32, Int32, UnsafeMutableRawPointer?) -> Int32 = {
      _, _, _, _ in -1
    }
    guard let handle = source.withPointer({ PEM_read_bio_PrivateKey($0, nil, noPassphrase, nil) }) else {
      throw .malformedPrivateKey(OpenSSLErrors.take())
    }
    self.init(owning: handle)
  }

  /// The private key in PKCS #8 without encryption, as PEM: `-----BEGIN PRIVATE KEY-----`.
  func pkcs8PEM() throws(CryptographyError) -> String {
    let target = try MemoryBIO()
    let code = withPointer { key in
      target.withPointer { PEM_write_bio_PKCS8PrivateKey($0, key, nil, nil, 0, nil, nil) }
    }
    guard code == 1 else {
      throw .operationFailed("PKCS #8 encoding", reason: OpenSSLErrors.take())
    }
    return String(decoding: target.take(), as: UTF8.self)
  }

  /// The public half as `SubjectPublicKeyInfo`.
  func spki() throws(CryptographyError) -> [UInt8] {
    let target = try MemoryBIO()
    guard withPointer({ key in target.withPointer { i2d_PUBKEY_bio($0, key) } }) == 1 else {
      throw .operationFailed("public key encoding", reason: OpenSSLErrors.take())
    }
    return target.take()
  }
}
