internal import COpenSSL
internal import Locking

/// A private key on P-256.
public final class P256PrivateKey: Sendable {
  /// The public key of the pair.
  public let publicKey: P256PublicKey
  let key: PKey
  /// A context that is not in use: making one costs more than half of a signature.
  private let spare = LockedValue<SigningContext?>(nil)

  /// A new key.
  public convenience init() throws(CryptographyError) {
    OpenSSLErrors.clear()
    guard let handle = sallyport_generate_ec("P-256") else {
      throw .operationFailed("key generation", reason: OpenSSLErrors.take())
    }
    try self.init(key: PKey(owning: handle))
  }

  /// The first private key in `pkcs8PEM`: PKCS #8 without encryption (RFC 5208), as `openssl genpkey` writes it.
  public convenience init(pkcs8PEM: String) throws(CryptographyError) {
    try self.init(key: PKey(pkcs8PEM: pkcs8PEM))
  }

  /// Parses a key in PKCS #8 without encryption. No bytes may follow it.
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
      publicKey = try P256PublicKey(spki: try key.spki())
    } catch {
      throw .malformedPrivateKey("not a key on P-256")
    }
  }

  /// An ECDSA signature of `message`, which is hashed here with SHA-256, in DER: 70 to 72 bytes, seldom fewer.
  public func signature(for message: [UInt8]) throws(CryptographyError) -> [UInt8] {
    try key.signature(for: message, digest: .sha256)
  }

  /// An ECDSA signature of `message`, which is hashed here with SHA-256, as JOSE's ES256 writes it: r, then s, 32 bytes
  /// each (RFC 7518 section 3.4). Meant for keys that sign often: any number of threads may sign at once.
  public func es256Signature(for message: [UInt8]) throws(CryptographyError) -> [UInt8] {
    OpenSSLErrors.clear()
    let found = spare.withLock { spare in
      defer { spare = nil }
      return spare
    }
    guard let context = found ?? SigningContext(of: key), let der = context.signature(of: SHA256.hash(message)),
      let signature = FixedWidthSignature.bytes(der: der)
    else { throw .operationFailed("signing", reason: OpenSSLErrors.take()) }
    spare.withLock { $0 = context }
    return signature
  }

  /// The key in PKCS #8 without encryption. A secret: for a file with mode 0600, never for a log.
  public var pkcs8DER: [UInt8] {
    get throws(CryptographyError) {
      let target = try MemoryBIO()
      let info = key.withPointer { EVP_PKEY2PKCS8($0) }
      defer { PKCS8_PRIV_KEY_INFO_free(info) }
      guard info != nil, target.withPointer({ i2d_PKCS8_PRIV_KEY_INFO_bio($0, info) }) == 1 else {
        throw .operationFailed("PKCS #8 encoding", reason: OpenSSLErrors.take())
      }
      return target.take()
    }
  }

  /// `pkcs8DER` as PEM: `-----BEGIN PRIVATE KEY-----`.
  public var pkcs8PEM: String {
    get throws(CryptographyError) { try key.pkcs8PEM() }
  }
}
