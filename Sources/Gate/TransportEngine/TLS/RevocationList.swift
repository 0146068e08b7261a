public import ByteCoding
internal import COpenSSL
internal import Glibc

/// A list of revoked certificates, as an authority signs it (RFC 5280 section 5).
public struct RevocationList: Sendable {
  /// The name of the authority, in the notation of RFC 2253.
  public let issuer: String
  /// When the list begins to be valid; `nil` if that cannot be read.
  public let thisUpdate: Timestamp?
  /// When the next list is due; `nil` if the list does not say it. From then on, every certificate of the authority is
  /// refused.
  public let nextUpdate: Timestamp?
  /// Identifies the authority, in the form of `CertificateLink.issuerHash`.
  let issuerHash: UInt32
  /// The certificates of the list, in the form of `CertificateLink.digest`.
  let revoked: Set<[UInt8]>
  /// The DER.
  private let der: [UInt8]

  /// The number of revoked certificates.
  public var count: Int { revoked.count }

  /// When the handshake uses the list; `nil` for never.
  public var validity: Range<Timestamp>? {
    let end = nextUpdate ?? Timestamp(seconds: .max)
    guard let thisUpdate, thisUpdate < end else { return nil }
    return thisUpdate..<end
  }

  /// The maximum size of a file of lists in bytes: some two million revoked certificates.
  public static let maximumSize = 64 << 20

  /// Reads a file of lists, PEM, in any order.
  ///
  /// - Throws: `ServerTLS.SetupError` if the file cannot be read, is larger than `maximumSize`, or holds none.
  public static func read(_ file: String) throws(ServerTLS.SetupError) -> [RevocationList] {
    try ReadableFile.require(file)
    var status = stat()
    guard stat(file, &status) == 0, status.st_size <= maximumSize else {
      throw ServerTLS.SetupError(file: file, reason: "is larger than 64 MiB")
    }
    ERR_clear_error()
    guard let store = X509_STORE_new() else {
      throw ServerTLS.SetupError(file: file, reason: OpenSSLError("cannot be read").description)
    }
    defer { X509_STORE_free(store) }
    try add(file, toStore: store)
    guard let objects = X509_STORE_get0_objects(store) else { return [] }
    return (0..<OPENSSL_sk_num(objects)).compactMap { index in
      OPENSSL_sk_value(objects, index).flatMap { X509_OBJECT_get0_X509_CRL(OpaquePointer($0)) }.flatMap(
        RevocationList.init)
    }
  }

  /// Makes the handshakes of `context` refuse what the lists of `file` revoke, and certificates of authorities without a
  /// valid list.
  ///
  /// - Parameter checksChain: Whether intermediate authorities must be in a list of theirs, too.
  static func install(
    _ file: String, in context: OpaquePointer, checksChain: Bool
  ) throws(ServerTLS.SetupError) {
    try add(file, to: context)
    let flags = UInt(X509_V_FLAG_CRL_CHECK) | (checksChain ? UInt(X509_V_FLAG_CRL_CHECK_ALL) : 0)
    guard X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(context), flags) == 1 else {
      throw ServerTLS.SetupError(file: file, reason: OpenSSLError("cannot be used").description)
    }
  }

  /// Adds the lists of `file` to those of `context`, an `SSL_CTX` that may be in use: OpenSSL has a lock, and takes the
  /// latest valid list of each authority.
  static func add(_ file: String, to context: OpaquePointer) throws(ServerTLS.SetupError) {
    try ReadableFile.require(file)
    if let store = SSL_CTX_get_cert_store(context) { try add(file, toStore: store) }
  }

  private static func add(_ file: String, toStore store: OpaquePointer) throws(ServerTLS.SetupError) {
    guard let lookup = X509_STORE_add_lookup(store, X509_LOOKUP_file()),
      X509_load_crl_file(lookup, file, X509_FILETYPE_PEM) > 0
    else {
      throw ServerTLS.SetupError(
        file: file, reason: OpenSSLError("holds no PEM list of revoked certificates (X509 CRL)").description)
    }
    ERR_clear_error()
  }

  private init?(_ list: OpaquePointer) {
    guard let name = X509_CRL_get_issuer(list), let issuer = CertificateLink.text(of: name),
      let issuerHash = CertificateLink.hash(of: name)
    else { return nil }
    self.issuer = issuer
    self.issuerHash = issuerHash
    thisUpdate = X509_CRL_get0_lastUpdate(list).flatMap(CertificateLink.time)
    // A time that cannot be read has passed long ago.
    nextUpdate = X509_CRL_get0_nextUpdate(list).map { CertificateLink.time($0) ?? Timestamp(seconds: 0) }
    var revoked: Set<[UInt8]> = []
    if let entries = X509_CRL_get_REVOKED(list) {
      for index in 0..<OPENSSL_sk_num(entries) {
        guard let entry = OPENSSL_sk_value(entries, index).map(OpaquePointer.init),
          let serial = X509_REVOKED_get0_serialNumber(entry),
          let digest = CertificateLink.digest(issuer: name, serial: serial)
        else { continue }
        revoked.insert(digest)
      }
    }
    self.revoked = revoked
    let length = i2d_X509_CRL(list, nil)
    guard length > 0 else { return nil }
    der = [UInt8](unsafeUninitializedCapacity: Int(length)) { buffer, initialized in
      var cursor = buffer.baseAddress
      initialized = Int(max(0, i2d_X509_CRL(list, &cursor)))
    }
  }

  /// Whether the authority with the certificate `authority`, DER, signed this list.
  public func isSigned(by authority: [UInt8]) -> Bool {
    let list = der.withUnsafeBufferPointer { bytes in
      var cursor = bytes.baseAddress
      return d2i_X509_CRL(nil, &cursor, bytes.count)
    }
    let certificate = authority.withUnsafeBufferPointer { bytes in
      var cursor = bytes.baseAddress
      return d2i_X509(nil, &cursor, bytes.count)
    }
    defer {
      X509_CRL_free(list)
      X509_free(certificate)
      ERR_clear_error()
    }
    guard let list, let certificate, X509_NAME_cmp(X509_CRL_get_issuer(list), X509_get_subject_name(certificate)) == 0
    else { return false }
    return X509_CRL_verify(list, X509_get0_pubkey(certificate)) == 1
  }
}
