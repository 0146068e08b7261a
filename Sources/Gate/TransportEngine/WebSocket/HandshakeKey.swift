internal import ByteCoding
internal import COpenSSL

/// `Sec-WebSocket-Key` and what proves that it was understood (RFC 6455 section 1.3).
enum HandshakeKey {
  /// The key made of 16 random bytes.
  static func key(of random: [UInt8]) -> String { Base64.encode(random) }

  /// The `Sec-WebSocket-Accept` for `key`, or an empty text, which proves nothing, if OpenSSL is configured not to
  /// offer SHA-1. Its strength does not matter here: it tells a WebSocket server from another, and no peer from another.
  static func accept(for key: String) -> String {
    let text = Array((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").utf8)
    let digest = [UInt8](unsafeUninitializedCapacity: Int(SHA_DIGEST_LENGTH)) { buffer, count in
      ERR_clear_error()
      count = SHA1(text, text.count, buffer.baseAddress) == nil ? 0 : Int(SHA_DIGEST_LENGTH)
    }
    return Base64.encode(digest)
  }
}
