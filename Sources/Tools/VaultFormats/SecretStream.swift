internal import CVaultCiphers
internal import Crypto
internal import Foundation

/// A stream of libsodium's `crypto_secretstream_xchacha20poly1305` that is one message.
enum SecretStream {
  /// The bytes of a header.
  static var headerBytes: Int { crypto_secretstream_xchacha20poly1305_headerbytes() }
  /// How many bytes longer than its content a message is.
  static var overhead: Int { crypto_secretstream_xchacha20poly1305_abytes() }

  /// The content of `message`; `nil` if its tag does not match, if it is not the last message of its stream, or if a
  /// length is impossible. Nothing is returned before the tag was verified.
  ///
  /// - Parameter key: 32 bytes.
  static func open(_ message: Data, header: Data, with key: SymmetricKey) -> Data? {
    guard header.count == headerBytes, message.count >= overhead,
      key.bitCount == 8 * crypto_secretstream_xchacha20poly1305_keybytes(), sodium_init() >= 0
    else { return nil }
    let (message, header) = (Array(message), Array(header))
    var state = crypto_secretstream_xchacha20poly1305_state()
    defer { sodium_memzero(&state, MemoryLayout<crypto_secretstream_xchacha20poly1305_state>.size) }
    let begun = key.withUnsafeBytes { key -> Int32 in
      guard let bytes = key.bindMemory(to: UInt8.self).baseAddress else { return -1 }
      return crypto_secretstream_xchacha20poly1305_init_pull(&state, header, bytes)
    }
    guard begun == 0 else { return nil }
    var content = [UInt8](repeating: 0, count: message.count - overhead)
    var (count, tag): (UInt64, UInt8) = (0, 0)
    let code = crypto_secretstream_xchacha20poly1305_pull(
      &state, &content, &count, &tag, message, UInt64(message.count), nil, 0)
    guard code == 0, count == content.count, tag == crypto_secretstream_xchacha20poly1305_tag_final() else {
      return nil
    }
    return Data(content)
  }
}
