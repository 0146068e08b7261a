public import ByteCoding
internal import COpenSSL
internal import Glibc
internal import Locking

/// The certificates and the settings of a TLS listener.
///
/// TLS 1.2 and 1.3; only AEAD ciphers with forward secrecy; the groups of `KeyExchange`; no compression, no
/// renegotiation and no session tickets; ALPN `http/1.1` (RFC 8446, RFC 9325).
public final class ServerTLS: Sendable {
  /// What is wrong with a file of a listener.
  public struct SetupError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The path of the file; `-` for the system's authorities.
    public let file: String
    /// What is wrong with it, for people.
    public let reason: String
    public var description: String { "\(file): \(reason)" }
  }

  /// The lowest version of TLS that is accepted.
  public enum MinimumVersion: Sendable, Hashable { case tls12, tls13 }

  /// The maximum size in bytes of the message with a client's certificate and its chain. OpenSSL allocates the
  /// whole message before it verifies anything, and its own limit is 100 KiB. About ten certificates with RSA keys
  /// fit, or twenty-five with P-256.
  static let longestCertificates = 16 << 10

  // An SSL_CTX is reference counted and safe to share once it is set up, which `init` completes.
  private nonisolated(unsafe) let context: OpaquePointer

  /// The SHA-256 digests, 32 bytes each, of the authorities that verify client certificates.
  public let clientAuthorities: Set<[UInt8]>

  private let revocations: LockedValue<Revocations>

  /// Whether each certificate of a chain needs a valid list of its issuer; otherwise only the client's own one does.
  private let checksChain: Bool

  /// Whether a certificate that was verified before would be accepted at `now`, but for its own time.
  ///
  /// - Parameters:
  ///   - authorities: The digests of the configured authorities in its chain.
  ///   - links: The digests of issuer and serial number of its chain.
  ///   - issuers: The hashes of the issuers of its chain, the client's own one first.
  public func accepts(
    authorities: Set<[UInt8]>, links: Set<[UInt8]>, issuers: [UInt32], at now: Timestamp
  ) -> Bool {
    guard clientAuthorities.isSuperset(of: authorities) else { return false }
    let checked = checksChain ? issuers[...] : issuers.prefix(1)
    return revocations.withLock { $0.revoked.isDisjoint(with: links) && $0.areValid(of: checked, at: now) }
  }

  /// Also refuses from now on what the lists of `file` revoke, in handshakes and by `accepts`. What earlier lists revoked
  /// stays refused.
  ///
  /// For a listener whose other files cannot be loaded, so that it cannot be replaced.
  ///
  /// - Throws: `SetupError` if the file cannot be read or holds no list; nothing has changed then.
  public func adopt(revocationListFile file: String) throws(SetupError) {
    let found = try Self.revocations(in: file)
    try withContext { (first: OpaquePointer) throws(SetupError) in
      for context in [first] + CertificateChoice.further(beside: first) {
        try RevocationList.add(file, to: context)
      }
    }
    revocations.withLock { $0.add(found) }
  }

  /// What the lists of revoked certificates say together.
  private struct Revocations {
    /// In the form of `CertificateLink.digest`.
    private(set) var revoked: Set<[UInt8]> = []
    /// When the lists of each issuer are valid, by the hash of its name; `nil` if certificates need no list.
    private var validity: [UInt32: Set<Range<Timestamp>>]?

    /// No list, and none is needed.
    init() {}

    init(_ lists: [RevocationList]) {
      var validity: [UInt32: Set<Range<Timestamp>>] = [:]
      for list in lists {
        revoked.formUnion(list.revoked)
        if let range = list.validity { validity[list.issuerHash, default: []].insert(range) }
      }
      self.validity = validity
    }

    /// The contexts keep their lists, too, and accept a certificate while one list of its issuer is valid.
    mutating func add(_ other: Revocations) {
      revoked.formUnion(other.revoked)
      validity?.merge(other.validity ?? [:]) { $0.union($1) }
    }

    /// Whether each of `issuers` has a list that is valid at `now`.
    func areValid(of issuers: ArraySlice<UInt32>, at now: Timestamp) -> Bool {
      guard let validity else { return true }
      return !issuers.isEmpty
        && issuers.allSatisfy { issuer in validity[issuer]?.contains { $0.contains(now) } == true }
    }
  }

  /// A certificate with its key.
  public struct CertificateFiles: Sendable, Hashable {
    /// The path of a PEM file with the server's certificate first, then its chain.
    public let certificateFile: String
    /// The path of a PEM file with the unencrypted key of that certificate.
    public let keyFile: String

    public init(certificateFile: String, keyFile: String) {
      self.certificateFile = certificateFile
      self.keyFile = keyFile
    }
  }

  /// Uses certificates in memory, and answers challenges for more.
  ///
  /// - Parameters:
  ///   - certificates: The first is for clients that send no name or a name that no certificate matches. Without any,
  ///     only challenges are answered and all other handshakes fail.
  ///   - challenges: Answers challenges in the handshakes of this listener.
  ///   - clientAuthorityFile: As below.
  ///   - trustsIntermediates: As below.
  ///   - revocationListFile: As below.
  /// - Throws: `SetupError` if a certificate or a file cannot be used.
  public init(
    _ certificates: [CertificateMaterial], challenges: ChallengeResponder, minimumVersion: MinimumVersion = .tls12,
    clientAuthorityFile: String? = nil, trustsIntermediates: Bool = false, revocationListFile: String? = nil
  ) throws(SetupError) {
    let authority = ClientAuthorityChoice(clientAuthorityFile, trustsIntermediates, revocationListFile)
    revocations = LockedValue(try Self.revocations(in: revocationListFile))
    checksChain = !trustsIntermediates
    var contexts: [OpaquePointer] = []
    do throws(SetupError) {
      // All contexts differ only in their certificate.
      for certificate in certificates.isEmpty ? [nil] : certificates.map(Optional.some) {
        contexts.append(
          try Self.makeContext(minimumVersion, authority) { context throws(SetupError) in
            if let certificate { try Self.load(certificate, into: context) }
          })
      }
    } catch {
      for context in contexts { SSL_CTX_free(context) }
      throw error
    }
    context = contexts.removeFirst()
    clientAuthorities = Self.authorities(of: context)
    guard challenges.install(in: context) else {
      for context in contexts { SSL_CTX_free(context) }
      throw SetupError(file: "-", reason: OpenSSLError("cannot answer challenges").description)
    }
    guard contexts.isEmpty || CertificateChoice.install(in: context, further: contexts) else {
      throw SetupError(file: "-", reason: OpenSSLError("cannot be combined with others").description)
    }
  }

  /// Reads the files.
  ///
  /// - Parameters:
  ///   - files: The certificate for clients that send no name or a name that no certificate matches.
  ///   - further: Certificates for clients that send a matching name; see `CertificateChoice`.
  ///   - clientAuthorityFile: PEM. If set, clients are asked for a certificate. They may send none; the handshake
  ///     fails for a certificate that this authority did not issue.
  ///   - trustsIntermediates: Whether a chain may end at any certificate of that file, also at one that is not
  ///     self-signed (`X509_V_FLAG_PARTIAL_CHAIN`). Otherwise it has to reach a self-signed one.
  ///   - revocationListFile: PEM. If set, certificates that these lists revoke are refused, and so is every certificate
  ///     of an authority without a valid list, in handshakes and by `accepts`. With `trustsIntermediates`, only the
  ///     client's own certificate is looked up: the issuers above a trusted intermediate are not known.
  /// - Throws: `SetupError` if a file cannot be read or used.
  public init(
    _ files: CertificateFiles, further: [CertificateFiles] = [], minimumVersion: MinimumVersion = .tls12,
    clientAuthorityFile: String? = nil, trustsIntermediates: Bool = false, revocationListFile: String? = nil
  ) throws(SetupError) {
    let authority = ClientAuthorityChoice(clientAuthorityFile, trustsIntermediates, revocationListFile)
    revocations = LockedValue(try Self.revocations(in: revocationListFile))
    checksChain = !trustsIntermediates
    // All contexts differ only in their certificate.
    context = try Self.makeContext(files, minimumVersion, authority)
    clientAuthorities = Self.authorities(of: context)
    guard !further.isEmpty else { return }
    var contexts: [OpaquePointer] = []
    do throws(SetupError) {
      for files in further { contexts.append(try Self.makeContext(files, minimumVersion, authority)) }
    } catch {
      for context in contexts { SSL_CTX_free(context) }
      throw error
    }
    guard CertificateChoice.install(in: context, further: contexts) else {
      throw SetupError(file: files.certificateFile, reason: OpenSSLError("cannot be combined with others").description)
    }
  }

  deinit { SSL_CTX_free(context) }

  /// Calls `body` with the `SSL_CTX`, which is valid until `body` returns and must not escape.
  func withContext<Result, Failure: Error>(
    _ body: (OpaquePointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try withExtendedLifetime(self) { () throws(Failure) in try body(context) }
  }

  /// The authorities that verify client certificates.
  private struct ClientAuthorityChoice {
    let file: String
    let trustsIntermediates: Bool
    let revocationListFile: String?

    /// `nil` if clients are not asked for a certificate.
    init?(_ file: String?, _ trustsIntermediates: Bool, _ revocationListFile: String?) {
      guard let file else { return nil }
      (self.file, self.trustsIntermediates) = (file, trustsIntermediates)
      self.revocationListFile = revocationListFile
    }
  }

  private static func makeContext(
    _ files: CertificateFiles, _ minimumVersion: MinimumVersion, _ clientAuthority: ClientAuthorityChoice?
  ) throws(SetupError) -> OpaquePointer {
    try makeContext(minimumVersion, clientAuthority) { context throws(SetupError) in
      try load(certificateFile: files.certificateFile, keyFile: files.keyFile, into: context)
    }
  }

  /// - Parameter loadCertificate: Loads the certificate that the context presents.
  private static func makeContext(
    _ minimumVersion: MinimumVersion, _ clientAuthority: ClientAuthorityChoice?,
    _ loadCertificate: (OpaquePointer) throws(SetupError) -> Void
  ) throws(SetupError) -> OpaquePointer {
    ERR_clear_error()
    guard let context = SSL_CTX_new(TLS_server_method()) else {
      throw SetupError(file: "-", reason: OpenSSLError("TLS is not available").description)
    }
    configureForGate(context, minimum: minimumVersion, asClient: false)
    sallyport_SSL_CTX_set_max_cert_list(context, longestCertificates)
    SSL_CTX_set_alpn_select_cb(context, selectHTTP11, nil)
    do throws(SetupError) {
      try loadCertificate(context)
      if let clientAuthority {
        CertificateGuard.install(in: context)
        try askForCertificates(of: clientAuthority, in: context)
      }
    } catch {
      SSL_CTX_free(context)
      throw error
    }
    return context
  }

  /// Loads the certificate that `context` presents, its chain, and its key, which must not be encrypted.
  static func load(certificateFile: String, keyFile: String, into context: OpaquePointer) throws(SetupError) {
    for file in [certificateFile, keyFile] { try ReadableFile.require(file) }
    guard SSL_CTX_use_certificate_chain_file(context, certificateFile) == 1 else {
      throw SetupError(file: certificateFile, reason: OpenSSLError("holds no usable PEM certificate").description)
    }
    // Without a callback OpenSSL would ask the terminal for the passphrase of an encrypted key, and wait.
    SSL_CTX_set_default_passwd_cb(context) { _, _, _, _ in -1 }
    let mismatch = SetupError(file: keyFile, reason: "is not the key of the certificate in \(certificateFile)")
    guard SSL_CTX_use_PrivateKey_file(context, keyFile, SSL_FILETYPE_PEM) == 1 else {
      if ERR_GET_REASON(ERR_peek_last_error()) == X509_R_KEY_VALUES_MISMATCH { throw mismatch }
      throw SetupError(file: keyFile, reason: OpenSSLError("holds no usable unencrypted PEM private key").description)
    }
    guard SSL_CTX_check_private_key(context) == 1 else { throw mismatch }
    ERR_clear_error()
  }

  private static func askForCertificates(
    of authority: ClientAuthorityChoice, in context: OpaquePointer
  ) throws(SetupError) {
    let file = authority.file
    try ReadableFile.require(file)
    guard let names = SSL_load_client_CA_file(file), OPENSSL_sk_num(names) > 0,
      SSL_CTX_load_verify_locations(context, file, nil) == 1
    else {
      throw SetupError(file: file, reason: OpenSSLError("holds no PEM certificate").description)
    }
    if authority.trustsIntermediates {
      guard X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(context), UInt(X509_V_FLAG_PARTIAL_CHAIN)) == 1 else {
        throw SetupError(file: file, reason: OpenSSLError("cannot be trusted without its issuer").description)
      }
    }
    if let lists = authority.revocationListFile {
      try RevocationList.install(lists, in: context, checksChain: !authority.trustsIntermediates)
    }
    SSL_CTX_set_client_CA_list(context, names)
    CertificateRefusal.askForCertificates(in: context)
    ERR_clear_error()
  }

  private static func revocations(in file: String?) throws(SetupError) -> Revocations {
    guard let file else { return Revocations() }
    return Revocations(try RevocationList.read(file))
  }

  private static func authorities(of context: OpaquePointer) -> Set<[UInt8]> {
    guard let store = SSL_CTX_get_cert_store(context), let objects = X509_STORE_get0_objects(store) else { return [] }
    var digests: Set<[UInt8]> = []
    for index in 0..<OPENSSL_sk_num(objects) {
      guard let object = OPENSSL_sk_value(objects, index),
        let certificate = X509_OBJECT_get0_X509(OpaquePointer(object))
      else { continue }
      if let digest = digest(of: certificate) { digests.insert(digest) }
    }
    return digests
  }

  /// The SHA-256 of the DER of `certificate`; `nil` if memory is exhausted.
  static func digest(of certificate: OpaquePointer) -> [UInt8]? {
    var digest = [UInt8](repeating: 0, count: 32)
    return X509_digest(certificate, EVP_sha256(), &digest, nil) == 1 ? digest : nil
  }

  /// Creates the state of a new connection; `nil` if memory is exhausted.
  func makeStream(in bio: BufferBIO) -> OpaquePointer? {
    // SSL_new takes its own reference to the context.
    guard let ssl = withContext(SSL_new) else { return nil }
    bio.attach(to: ssl)
    SSL_set_accept_state(ssl)
    return ssl
  }
}

/// Applies the settings that server and client contexts share.
func configureForGate(_ context: OpaquePointer, minimum: ServerTLS.MinimumVersion, asClient: Bool) {
  SSL_CTX_set_options(context, sallyport_SSL_OP_for_gate())
  sallyport_SSL_CTX_set_mode(
    context,
    UInt32(
      SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER
        | SSL_MODE_NO_AUTO_CHAIN))
  // SSL_read returns after each record without data, so that `SocketState` can count them.
  sallyport_SSL_CTX_clear_mode(context, UInt32(SSL_MODE_AUTO_RETRY))
  _ = sallyport_SSL_CTX_set_min_proto_version(context, minimum == .tls12 ? TLS1_2_VERSION : TLS1_3_VERSION)
  sallyport_SSL_CTX_disable_session_cache(context)
  SSL_CTX_set_num_tickets(context, 0)
  // Constant lists that every OpenSSL 3 accepts.
  SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256")
  SSL_CTX_set_cipher_list(context, "ECDHE+AESGCM:ECDHE+CHACHA20:!aNULL:!PSK")
  KeyExchange.offer(in: context, asClient: asClient)
}

/// Chooses `http/1.1` if the client offers it; a client that offers only others is refused (RFC 7301 section 3.2).
private func selectHTTP11(
  ssl: OpaquePointer?, chosen: UnsafeMutablePointer<UnsafePointer<UInt8>?>?,
  chosenLength: UnsafeMutablePointer<UInt8>?, offered: UnsafePointer<UInt8>?, offeredLength: UInt32,
  argument: UnsafeMutableRawPointer?
) -> Int32 {
  guard let chosen, let chosenLength, let offered else { return SSL_TLSEXT_ERR_ALERT_FATAL }
  let list = UnsafeBufferPointer(start: offered, count: Int(offeredLength))
  var position = 0
  while position < list.count {
    let length = Int(list[position])
    guard position + 1 + length <= list.count else { break }
    if list[(position + 1)..<(position + 1 + length)].elementsEqual("http/1.1".utf8) {
      chosen.pointee = offered + position + 1
      chosenLength.pointee = UInt8(length)
      return SSL_TLSEXT_ERR_OK
    }
    position += 1 + length
  }
  return SSL_TLSEXT_ERR_ALERT_FATAL
}
