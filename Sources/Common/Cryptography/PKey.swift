internal import COpenSSL
internal import Locking

/// An `EVP_PKEY`: a public or private key of any kind.
///
/// The object is never changed after it was made, and OpenSSL lets any number of threads use such a key at once.
final class PKey: @unchecked Sendable {
  private let handle: OpaquePointer

  /// An unused context. Making one costs a third of the time of a verification.
  private let spare = LockedValue<VerificationContext?>(nil)

  /// Takes over `handle`.
  init(owning handle: OpaquePointer) { self.handle = handle }

  /// The key in a `SubjectPublicKeyInfo`; `nil` if OpenSSL cannot read it, or must not (`PublicKeyForm`).
  convenience init?(spki: ArraySlice<UInt8>) {
    guard PublicKeyForm.fault(of: spki) == nil else { return nil }
    OpenSSLErrors.clear()
    let parsed = spki.withUnsafeBufferPointer { bytes in
      var cursor = bytes.baseAddress
      return d2i_PUBKEY(nil, &cursor, bytes.count)
    }
    guard let parsed else { return nil }
    self.init(owning: parsed)
  }

  /// The key of `certificate`; `nil` if OpenSSL cannot read it.
  convenience init?(of certificate: Certificate) {
    let spki = certificate.fields.subjectPublicKeyInfo
    // OpenSSL needs several times as long for the whole structure as for the point alone.
    guard let point = P256PublicKey.point(inSPKI: spki) else {
      self.init(spki: spki)
      return
    }
    self.init(p256Point: point)
  }

  /// The public key on P-256 at `point`, X9.62 uncompressed; `nil` if there is no such point on the curve.
  convenience init?(p256Point point: [UInt8]) { self.init(point: point, curve: "prime256v1") }

  /// The public key at `point` of a curve that OpenSSL knows by this name; `nil` if there is no such point on it.
  convenience init?(point: [UInt8], curve: String) {
    OpenSSLErrors.clear()
    guard let handle = sallyport_ec_public_key(curve, point, point.count) else { return nil }
    self.init(owning: handle)
  }

  deinit { EVP_PKEY_free(handle) }

  /// Calls `body` with the `EVP_PKEY`, which is valid until `body` returns and must not leave it.
  func withPointer<Result, Failure: Error>(
    _ body: (OpaquePointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try withExtendedLifetime(self) { () throws(Failure) in try body(handle) }
  }

  var isOnEllipticCurve: Bool { withPointer { EVP_PKEY_is_a($0, "EC") == 1 } }

  /// Whether `signature` is the DER of an ECDSA signature of `message` hashed with `digest`. The key has to be on an
  /// elliptic curve.
  func isValid(_ signature: some Collection<UInt8>, for message: [UInt8], digest: DigestAlgorithm) -> Bool {
    OpenSSLErrors.isolated {
      let context = spare.withLock { spare in
        defer { spare = nil }
        return spare
      }
      guard let context = context ?? VerificationContext(of: self) else { return false }
      defer { spare.withLock { $0 = context } }
      return context.isValid(Array(signature), for: digest.hash(message))
    }
  }

  /// Whether `signature` is one of `message` by this key: PKCS #1 version 1.5 for an RSA key, ECDSA in DER for one on an
  /// elliptic curve.
  func isValid(_ signature: ArraySlice<UInt8>, for message: ArraySlice<UInt8>, digest: DigestAlgorithm) -> Bool {
    OpenSSLErrors.isolated {
      guard let context = EVP_MD_CTX_new() else { return false }
      defer { EVP_MD_CTX_free(context) }
      guard withPointer({ EVP_DigestVerifyInit(context, nil, digest.method, nil, $0) }) == 1 else { return false }
      return signature.withUnsafeBufferPointer { signature in
        message.withUnsafeBufferPointer { message in
          EVP_DigestVerify(context, signature.baseAddress, signature.count, message.baseAddress, message.count) == 1
        }
      }
    }
  }

  /// The signature of `message` hashed with `digest`; for elliptic curves the DER of `ECDSA-Sig-Value` (RFC 3279).
  func signature(for message: [UInt8], digest: DigestAlgorithm) throws(CryptographyError) -> [UInt8] {
    OpenSSLErrors.clear()
    guard let context = EVP_MD_CTX_new() else { throw failure("signing") }
    defer { EVP_MD_CTX_free(context) }
    var size = 0
    guard withPointer({ EVP_DigestSignInit(context, nil, digest.method, nil, $0) }) == 1,
      EVP_DigestSign(context, nil, &size, message, message.count) == 1
    else { throw failure("signing") }
    var signature = [UInt8](repeating: 0, count: size)
    guard EVP_DigestSign(context, &signature, &size, message, message.count) == 1 else { throw failure("signing") }
    return Array(signature.prefix(size))
  }

  private func failure(_ operation: String) -> CryptographyError {
    .operationFailed(operation, reason: OpenSSLErrors.take())
  }
}
