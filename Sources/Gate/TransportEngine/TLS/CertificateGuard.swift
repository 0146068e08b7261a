internal import COpenSSL

/// Keeps OpenSSL from parsing keys of client certificates that are on curves without a name.
///
/// OpenSSL parses the keys of all certificates that a client sends, before it verifies any. A curve given by its
/// parameters makes it compute with a prime that the client chose: a key of 554 bytes takes 300 ms, so that one message
/// of the allowed size would occupy a loop for six seconds. RFC 5480 section 2.1.1 forbids such curves in certificates.
///
/// OpenSSL shows a message before it parses it, and takes no verdict about it. So the kind of such a key is overwritten.
/// Then the certificate has a key of an unknown kind, and its verification fails.
enum CertificateGuard {
  /// The type of a Certificate message (RFC 5246 section 7.4, RFC 8446 section 4).
  private static let certificateMessage: UInt8 = 11

  /// Guards the handshakes of `context`. Costs time for each record, so `remove` it when a handshake has ended.
  static func install(in context: OpaquePointer) {
    SSL_CTX_set_msg_callback(context) { isWritten, _, kind, bytes, count, _, _ in
      guard isWritten == 0, kind == SSL3_RT_HANDSHAKE, let bytes, count > 0 else { return }
      let message = UnsafeMutableRawBufferPointer(start: UnsafeMutableRawPointer(mutating: bytes), count: count)
      if message[0] == CertificateGuard.certificateMessage { CertificateGuard.spoilUnnamedCurves(in: message) }
    }
  }

  static func remove(from connection: OpaquePointer) { SSL_set_msg_callback(connection, nil) }

  /// id-ecPublicKey, 1.2.840.10045.2.1. The identifier of a curve follows, or parameters.
  private static let ellipticCurveKey: [UInt8] = [0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01]
  /// SM2, 1.2.156.10197.1.301, which OpenSSL reads in its place.
  private static let sm2Key: [UInt8] = [0x2A, 0x81, 0x1C, 0xCF, 0x55, 0x01, 0x82, 0x2D]
  private static let objectIdentifierTag: UInt8 = 6

  /// Overwrites a byte of each identifier of a key's kind that no identifier of a curve follows.
  static func spoilUnnamedCurves(in message: UnsafeMutableRawBufferPointer) {
    for start in message.indices where message[start] == ellipticCurveKey[0] {
      let rest = UnsafeRawBufferPointer(rebasing: message[start...])
      let isUnnamed =
        rest.starts(with: ellipticCurveKey) && rest.dropFirst(ellipticCurveKey.count).first != objectIdentifierTag
      if isUnnamed || rest.starts(with: sm2Key) { message[start + 1] = 0 }
    }
  }
}
