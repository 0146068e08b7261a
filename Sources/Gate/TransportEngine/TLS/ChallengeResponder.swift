internal import ByteCoding
internal import COpenSSL
internal import Locking

/// Answers TLS-ALPN-01 challenges (RFC 8737) in the handshakes of a listener.
///
/// A handshake that offers `acme-tls/1` and nothing else, for a name with a challenge, gets the certificate of that
/// challenge. The engine then closes the connection: there is no way from here to a request. All other handshakes are
/// as if there were no challenges.
public final class ChallengeResponder: Sendable {
  /// The protocol of a validation (RFC 8737 section 6.2).
  static let protocolName = "acme-tls/1"

  /// The contexts of the challenges, by the bytes of the name in lower case. The names of ClientHellos are compared as
  /// bytes: hashing a `String` of many combining marks is expensive.
  private let contexts = LockedValue<[[UInt8]: ChallengeContext]>([:])
  /// The maximum number of bytes of a host name (RFC 1035 section 3.1).
  private static let longestName = 255

  public init() {}

  /// Answers exactly these challenges from now on: a certificate for each name.
  ///
  /// - Throws: `ServerTLS.SetupError` if a certificate cannot be used. Nothing has changed then.
  public func answer(_ challenges: [String: CertificateMaterial]) throws(ServerTLS.SetupError) {
    var fresh: [[UInt8]: ChallengeContext] = [:]
    for (name, material) in challenges { fresh[name.utf8.map(\.lowercasedASCII)] = try ChallengeContext(material) }
    contexts.withLock { $0 = fresh }
  }

  /// The names whose challenges are answered now.
  public var names: Set<String> { Set(contexts.withLock(\.self).keys.map { String(decoding: $0, as: UTF8.self) }) }

  /// Makes the handshakes of `context` ask this responder first. `context` keeps the responder alive.
  ///
  /// - Returns: `false` if memory is exhausted.
  func install(in context: OpaquePointer) -> Bool {
    let responder = Unmanaged.passRetained(self).toOpaque()
    guard SSL_CTX_set_ex_data(context, Self.index, responder) == 1 else {
      Unmanaged<ChallengeResponder>.fromOpaque(responder).release()
      return false
    }
    SSL_CTX_set_client_hello_cb(context, lookForChallenge, responder)
    return true
  }

  /// The index at which a context stores its responder. The responder is released with the context.
  private static let index = sallyport_SSL_CTX_new_index { _, responder, _, _, _, _ in
    if let responder { Unmanaged<ChallengeResponder>.fromOpaque(responder).release() }
  }

  /// Whether the handshake of `tls` answered a challenge.
  static func hasAnswered(_ tls: OpaquePointer) -> Bool {
    var name: UnsafePointer<UInt8>?
    var count: UInt32 = 0
    SSL_get0_alpn_selected(tls, &name, &count)
    return UnsafeBufferPointer(start: name, count: Int(count)).elementsEqual(protocolName.utf8)
  }

  /// Gives `tls` the certificate of a challenge, if its ClientHello asks for one.
  fileprivate func choose(for tls: OpaquePointer) {
    guard let protocols = ClientHelloExtension.bytes(TLSEXT_TYPE_application_layer_protocol_negotiation, of: tls),
      ClientHelloExtension.onlyProtocol(in: protocols)?.elementsEqual(Self.protocolName.utf8) == true,
      let names = ClientHelloExtension.bytes(TLSEXT_TYPE_server_name, of: tls),
      let name = ClientHelloExtension.hostName(in: names), name.count <= Self.longestName
    else { return }
    let key = name.map(\.lowercasedASCII)
    guard let context = contexts.withLock({ $0[key] }) else { return }
    // The connection takes its own reference, so the challenge may end during the handshake.
    context.withContext { _ = SSL_set_SSL_CTX(tls, $0) }
    // A validator has no certificate.
    SSL_set_verify(tls, SSL_VERIFY_NONE, nil)
  }
}

private func lookForChallenge(
  tls: OpaquePointer?, alert: UnsafeMutablePointer<Int32>?, responder: UnsafeMutableRawPointer?
) -> Int32 {
  if let tls, let responder {
    Unmanaged<ChallengeResponder>.fromOpaque(responder).takeUnretainedValue().choose(for: tls)
  }
  return SSL_CLIENT_HELLO_SUCCESS
}

/// The certificate of one challenge.
private final class ChallengeContext: Sendable {
  // As in ServerTLS: shared only after `init` has set it up.
  private nonisolated(unsafe) let context: OpaquePointer

  init(_ material: CertificateMaterial) throws(ServerTLS.SetupError) {
    ERR_clear_error()
    guard let context = SSL_CTX_new(TLS_server_method()) else {
      throw ServerTLS.SetupError(file: "-", reason: OpenSSLError("TLS is not available").description)
    }
    self.context = context
    configureForGate(context, minimum: .tls12, asClient: false)
    SSL_CTX_set_alpn_select_cb(context, selectChallengeProtocol, nil)
    // Otherwise the listener's own choice of a certificate would follow.
    sallyport_SSL_CTX_set_servername(context, { _, _, _ in SSL_TLSEXT_ERR_OK }, nil)
    try ServerTLS.load(material, into: context)
  }

  deinit { SSL_CTX_free(context) }

  func withContext<Result>(_ body: (OpaquePointer) -> Result) -> Result {
    withExtendedLifetime(self) { body(context) }
  }
}

/// Chooses `acme-tls/1`, the only protocol of a ClientHello for which this context is used.
private func selectChallengeProtocol(
  ssl: OpaquePointer?, chosen: UnsafeMutablePointer<UnsafePointer<UInt8>?>?,
  chosenLength: UnsafeMutablePointer<UInt8>?, offered: UnsafePointer<UInt8>?, offeredLength: UInt32,
  argument: UnsafeMutableRawPointer?
) -> Int32 {
  guard let chosen, let chosenLength, let offered, offeredLength > 1, Int(offered[0]) == Int(offeredLength) - 1 else {
    return SSL_TLSEXT_ERR_ALERT_FATAL
  }
  chosen.pointee = offered + 1
  chosenLength.pointee = offered[0]
  return SSL_TLSEXT_ERR_OK
}

/// The extensions of a ClientHello, before OpenSSL has read them.
enum ClientHelloExtension {
  /// The content of the extension of `type`; `nil` if there is none. Valid in the callback for the ClientHello only.
  static func bytes(_ type: Int32, of tls: OpaquePointer) -> UnsafeBufferPointer<UInt8>? {
    var start: UnsafePointer<UInt8>?
    var count = 0
    guard SSL_client_hello_get0_ext(tls, UInt32(type), &start, &count) == 1 else { return nil }
    return UnsafeBufferPointer(start: start, count: count)
  }

  /// The only protocol in a list (RFC 7301 section 3.1); `nil` if there are several or the list is malformed.
  static func onlyProtocol(in list: UnsafeBufferPointer<UInt8>) -> Slice<UnsafeBufferPointer<UInt8>>? {
    guard list.count > 3, Int(list[0]) << 8 | Int(list[1]) == list.count - 2, Int(list[2]) == list.count - 3 else {
      return nil
    }
    return list[3...]
  }

  /// The host name in a list with nothing else (RFC 6066 section 3); `nil` if the list is malformed.
  static func hostName(in list: UnsafeBufferPointer<UInt8>) -> Slice<UnsafeBufferPointer<UInt8>>? {
    guard list.count > 5, Int(list[0]) << 8 | Int(list[1]) == list.count - 2, list[2] == 0,
      Int(list[3]) << 8 | Int(list[4]) == list.count - 5
    else { return nil }
    return list[5...]
  }
}
