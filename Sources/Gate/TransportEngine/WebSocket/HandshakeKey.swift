internal import ByteCoding
internal import COpenSSL

/// `Sec-WebSocket-Key` and the value that proves that the server understood it (RFC 6455 section 1.3).
enum HandshakeKey {
  /// Encodes a key of 16 random bytes.
  static func key(of random: [UInt8]) -> String { Base64.encode(random) }

  /// Returns the `Sec-WebSocket-Accept` for `key`; an empty string, which proves nothing, if OpenSSL offers no SHA-1.
  /// The strength of SHA-1 does not matter: the value only shows that the peer speaks WebSocket.
  static func accept(for key: String) -> String {
    var text: [UInt8] = []
    text.reserveCapacity(64)
    text += key.utf8
    text += "258EAFA5-E914-47DA-95CA-C5AB0DC85B11".utf8
    let digest = [UInt8](unsafeUninitializedCapacity: Int(SHA_DIGEST_LENGTH)) { buffer, count in
      ERR_clear_error()
      count = SHA1(text, text.count, buffer.baseAddress) == nil ? 0 : Int(SHA_DIGEST_LENGTH)
    }
    return Base64.encode(digest)
  }
}
