internal import COpenSSL
internal import Glibc

/// The authorities and the identity with which the engine opens TLS connections of its own. Peers are always verified.
public final class ClientTLS: Sendable {
  // As in ServerTLS: shared only after `init` has set it up.
  private nonisolated(unsafe) let context: OpaquePointer

  /// - Parameters:
  ///   - authorityFile: PEM authorities to trust, instead of the system's.
  ///   - certificateFile: PEM, the certificate to present where the server asks for one, with its chain.
  ///   - keyFile: PEM, the key of that certificate.
  public init(
    authorityFile: String? = nil, certificateFile: String? = nil, keyFile: String? = nil
  ) throws(ServerTLS.Fault) {
    ERR_clear_error()
    guard let context = SSL_CTX_new(TLS_client_method()) else {
      throw ServerTLS.Fault(file: authorityFile ?? "-", reason: OpenSSLError("TLS is not available").description)
    }
    self.context = context
    configureForGate(context, minimum: .tls12)
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nil)
    try Self.trust(authorityFile, in: context)
    if let certificateFile, let keyFile {
      try ServerTLS.load(certificateFile: certificateFile, keyFile: keyFile, into: context)
    }
    ERR_clear_error()
  }

  deinit { SSL_CTX_free(context) }

  /// Calls `body` with the `SSL_CTX`, which is valid until `body` returns and must not leave it.
  func withContext<Result>(_ body: (OpaquePointer) -> Result) -> Result {
    withExtendedLifetime(self) { body(context) }
  }

  private static func trust(_ file: String?, in context: OpaquePointer) throws(ServerTLS.Fault) {
    guard let file else {
      guard SSL_CTX_set_default_verify_paths(context) == 1 else {
        throw ServerTLS.Fault(file: "-", reason: OpenSSLError("the system's authorities cannot be used").description)
      }
      return
    }
    try ReadableFile.require(file)
    guard SSL_CTX_load_verify_locations(context, file, nil) == 1 else {
      throw ServerTLS.Fault(file: file, reason: OpenSSLError("holds no PEM certificate").description)
    }
  }

  /// A new connection to a server that must prove to be `name`, a DNS name or an address among its certificate's alternative
  /// names; `nil` when memory is out or
  /// the name is of no use.
  func makeStream(in bio: WindowBIO, verifying name: String) -> OpaquePointer? {
    // It takes a reference of its own to the context.
    guard let ssl = withContext(SSL_new) else { return nil }
    let parameters = SSL_get0_param(ssl)
    let isSet: Bool
    if X509_VERIFY_PARAM_set1_ip_asc(parameters, name) == 1 {
      isSet = true
    } else {
      ERR_clear_error()
      // A common name is no host name: what a certificate does not say in its alternative names it does not say
      // (RFC 9525 section 6.3).
      X509_VERIFY_PARAM_set_hostflags(
        parameters, UInt32(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT))
      isSet = X509_VERIFY_PARAM_set1_host(parameters, name, 0) == 1 && sallyport_SSL_set_server_name(ssl, name) == 1
    }
    guard isSet else {
      SSL_free(ssl)
      return nil
    }
    let protocols: [UInt8] = [8] + Array("http/1.1".utf8)
    SSL_set_alpn_protos(ssl, protocols, UInt32(protocols.count))
    bio.attach(to: ssl)
    SSL_set_connect_state(ssl)
    return ssl
  }
}
