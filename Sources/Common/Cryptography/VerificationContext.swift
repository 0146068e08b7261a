internal import COpenSSL

/// An `EVP_PKEY_CTX` that verifies signatures of digests with one key.
///
/// Only one caller uses it at a time: `PKey` lends it.
final class VerificationContext: @unchecked Sendable {
  private let handle: OpaquePointer

  /// `nil` if OpenSSL cannot make one.
  init?(of key: PKey) {
    // The context has a reference of its own to the key.
    guard let handle = key.withPointer({ EVP_PKEY_CTX_new($0, nil) }) else { return nil }
    self.handle = handle
    guard EVP_PKEY_verify_init(handle) == 1 else { return nil }
  }

  deinit { EVP_PKEY_CTX_free(handle) }

  /// Whether `signature` is one of `digest`.
  func isValid(_ signature: [UInt8], for digest: [UInt8]) -> Bool {
    withExtendedLifetime(self) { EVP_PKEY_verify(handle, signature, signature.count, digest, digest.count) == 1 }
  }
}
