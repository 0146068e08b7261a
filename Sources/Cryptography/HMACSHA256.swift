internal import COpenSSL

/// HMAC with SHA-256 (RFC 2104): authentication codes of 32 bytes.
public enum HMACSHA256 {
  public static let codeSize = 32

  /// The code of `message` under `key`, which may have any length. Compare codes with `constantTimeEqual`.
  public static func authenticate(_ message: [UInt8], key: [UInt8]) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: codeSize) { output, count in
      let code = HMAC(
        DigestAlgorithm.sha256.method, key, Int32(key.count), message, message.count, output.baseAddress, nil)
      // Fails only without memory: the digest is there, and so are key and message.
      guard code != nil else { fatalError("HMAC-SHA-256 failed: \(OpenSSLErrors.take())") }
      count = codeSize
    }
  }
}
