internal import ByteCoding

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
    return SHA256.hash(block(of: key, combinedWith: 0x5C), SHA256.hash(block(of: key, combinedWith: 0x36), message))
  }

  /// Returns `key` with zeros up to the size of a block, each byte combined with `pad` by XOR.
  private static func block(of key: [UInt8], combinedWith pad: UInt8) -> [UInt8] {
    [UInt8](upTo: blockSize) { block in
      block.initialize(repeating: pad)
      for index in key.indices { block[index] ^= key[index] }
      return blockSize
    }
  }
}
