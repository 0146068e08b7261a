internal import COpenSSL
internal import Glibc
public import Transport

/// The authorities and the identity for TLS connections that the engine opens. The server is always verified.
public final class ClientTLS: Sendable {
  // As in ServerTLS: shared only after `init` has set it up.
  private nonisolated(unsafe) let context: OpaquePointer

  /// Reads the authorities and the client certificate.
  ///
  /// - Parameters:
  ///   - authorityFile: PEM authorities to trust instead of the system's.
  ///   - certificateFile: PEM, the certificate to present if the server asks for one, with its chain.
  ///   - keyFile: PEM, the key of that certificate.
  /// - Throws: `ServerTLS.SetupError` if a file cannot be read or used.
  public init(
    authorityFile: String? = nil, certificateFile: String? = nil, keyFile: String? = nil
  ) throws(ServerTLS.SetupError) {
    ERR_clear_error()
    guard let context = SSL_CTX_new(TLS_client_method()) else {
      throw ServerTLS.SetupError(file: authorityFile ?? "-", reason: OpenSSLError("TLS is not available").description)
    }
    self.context = context
    configureForGate(context, minimum: .tls12, asClient: true)
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nil)
    try Self.trust(authorityFile, in: context)
    if let certificateFile, let keyFile {
      try ServerTLS.load(certificateFile: certificateFile, keyFile: keyFile, into: context)
    }
    ERR_clear_error()
  }

  /// Reads the files for connections to an upstream.
  ///
  /// - Throws: `ServerTLS.SetupError` if a file cannot be read or used.
  public convenience init(for upstream: UpstreamTLS) throws(ServerTLS.SetupError) {
    try self.init(
      authorityFile: upstream.caFile, certificateFile: upstream.identity?.certificateFile,
      keyFile: upstream.identity?.keyFile)
  }

  deinit { SSL_CTX_free(context) }

  /// Calls `body` with the `SSL_CTX`, which is valid until `body` returns and must not escape.
  func withContext<Result>(_ body: (OpaquePointer) -> Result) -> Result {
    withExtendedLifetime(self) { body(context) }
  }

  private static func trust(_ file: String?, in context: OpaquePointer) throws(ServerTLS.SetupError) {
    guard let file else {
      guard SSL_CTX_set_default_verify_paths(context) == 1 else {
        throw ServerTLS.SetupError(
          file: "-", reason: OpenSSLError("the system's authorities cannot be used").description)
      }
      return
    }
    try ReadableFile.require(file)
    guard SSL_CTX_load_verify_locations(context, file, nil) == 1 else {
      throw ServerTLS.SetupError(file: file, reason: OpenSSLError("holds no PEM certificate").description)
    }
  }

  /// Creates the state of a connection to a server that must prove the identity `name`: a DNS name or an address in
  /// the alternative names of its certificate. Returns `nil` if memory is exhausted or the name is invalid.
  func makeStream(in bio: BufferBIO, verifying name: String) -> OpaquePointer? {
    // SSL_new takes its own reference to the context.
    guard let ssl = withContext(SSL_new) else { return nil }
    let parameters = SSL_get0_param(ssl)
    let isSet: Bool
    if X509_VERIFY_PARAM_set1_ip_asc(parameters, name) == 1 {
      isSet = true
    } else {
      ERR_clear_error()
      // Host names are matched against the alternative names only, never against the common
      // name (RFC 9525 section 6.3).
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
