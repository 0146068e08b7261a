internal import ByteCoding
internal import COpenSSL

/// An `EVP_PKEY_CTX` that signs digests with one key.
///
/// Only one caller uses it at a time: `P256PrivateKey` lends it.
final class SigningContext: @unchecked Sendable {
  private let handle: OpaquePointer

  /// `nil` if OpenSSL cannot make one.
  init?(of key: PKey) {
    // The context has a reference of its own to the key.
    guard let handle = key.withPointer({ EVP_PKEY_CTX_new($0, nil) }) else { return nil }
    self.handle = handle
    guard EVP_PKEY_sign_init(handle) == 1 else { return nil }
  }

  deinit { EVP_PKEY_CTX_free(handle) }

  /// Returns the DER of an ECDSA signature of `digest`; `nil` if OpenSSL fails.
  func signature(of digest: [UInt8]) -> [UInt8]? {
    // The longest DER of two integers below the order of P-256.
    let longest = 72
    var size = longest
    let signature = withExtendedLifetime(self) {
      [UInt8](upTo: longest) { buffer in
        EVP_PKEY_sign(handle, buffer.baseAddress, &size, digest, digest.count) == 1 ? size : 0
      }
    }
    return signature.isEmpty ? nil : signature
  }
}
