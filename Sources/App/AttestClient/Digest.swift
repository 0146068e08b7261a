#if canImport(CryptoKit)
  internal import CryptoKit
#else
  internal import Cryptography
#endif

/// SHA-256 of the platform: CryptoKit in an app, so that it builds no server code, and OpenSSL elsewhere.
enum Digest {
  static func sha256(_ bytes: [UInt8]) -> [UInt8] {
    #if canImport(CryptoKit)
      [UInt8](SHA256.hash(data: bytes))
    #else
      SHA256.hash(bytes)
    #endif
  }
}
