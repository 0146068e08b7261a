internal import COpenSSL

/// A SHA-256 digest of data that arrives in parts (FIPS 180-4).
public final class RunningSHA256 {
  private let context: OpaquePointer

  /// Creates a digest of no bytes.
  public init() {
    // Fails for want of memory only, without which Swift does not go on either.
    guard let context = EVP_MD_CTX_new(), EVP_DigestInit_ex(context, DigestAlgorithm.sha256.method, nil) == 1 else {
      fatalError("no digest: \(OpenSSLErrors.take())")
    }
    self.context = context
  }

  deinit { EVP_MD_CTX_free(context) }

  /// Adds bytes to the digest.
  public func update(_ bytes: [UInt8]) {
    // Hashing bytes in memory cannot fail.
    guard withExtendedLifetime(self, { EVP_DigestUpdate(context, bytes, bytes.count) }) == 1 else {
      fatalError("no digest: \(OpenSSLErrors.take())")
    }
  }

  /// Returns the digest of all added bytes, 32 bytes. No bytes may be added afterwards.
  public func finish() -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: SHA256.digestSize) { output, count in
      // As in `update`. The buffer has the size of the digest.
      guard withExtendedLifetime(self, { EVP_DigestFinal_ex(context, output.baseAddress, nil) }) == 1 else {
        fatalError("no digest: \(OpenSSLErrors.take())")
      }
      count = SHA256.digestSize
    }
  }
}
