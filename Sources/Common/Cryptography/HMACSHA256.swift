/// HMAC with SHA-256 (RFC 2104): authentication codes of 32 bytes.
public enum HMACSHA256 {
  /// The size of a code in bytes.
  public static let codeSize = 32
  /// The block size of SHA-256 in bytes.
  private static let blockSize = 64

  /// The code of `message` under `key`, which may have any length. Compare codes with `constantTimeEqual`.
  // OpenSSL's own function looks up the algorithms by name at each call, which costs more than the rest.
  public static func authenticate(_ message: [UInt8], key: [UInt8]) -> [UInt8] {
    let key = key.count > blockSize ? SHA256.hash(key) : key
    var inner = [UInt8](repeating: 0x36, count: blockSize)
    var outer = [UInt8](repeating: 0x5C, count: blockSize)
    for index in key.indices {
      inner[index] ^= key[index]
      outer[index] ^= key[index]
    }
    return SHA256.hash(outer, SHA256.hash(inner, message))
  }
}
