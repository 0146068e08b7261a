public import ByteCoding

/// A folder with a certificate authority for debug builds: `ca.pem` and `ca.key`, and `NAME.crt` and `NAME.key` for
/// each client, with the names of the guide for app developers. Keys use P-256 and are stored in files of mode 0600.
///
/// The gate admits every holder of a certificate of this authority, so it belongs on a developer's own machine. It is
/// not a public authority: it keeps no list of what it issued, only one of what it has revoked: `crl.pem`.
public struct ClientAuthority: Sendable, Hashable {
  public let folder: String

  public init(folder: String) { self.folder = folder }

  /// The path of the authority's certificate.
  public var certificatePath: String { "\(folder)/ca.pem" }
  /// The path of the authority's private key.
  public var keyPath: String { "\(folder)/ca.key" }
  /// The path of the list of revoked certificates. It exists from the first call of `revoke` on.
  public var revocationListPath: String { "\(folder)/crl.pem" }
  /// The path of a client's certificate.
  public func certificatePath(of client: String) -> String { "\(folder)/\(client).crt" }
  /// The path of a client's private key.
  public func keyPath(of client: String) -> String { "\(folder)/\(client).key" }

  /// Creates the authority: a self-signed version 3 certificate that may issue client certificates but no
  /// sub-authorities.
  ///
  /// A list of revoked certificates is replaced by an empty one of this authority: that of another authority would refuse
  /// every client.
  ///
  /// - Parameters:
  ///   - subject: The name of the authority.
  ///   - days: The validity in days. It starts one day before `instant`, since clocks differ.
  ///   - isReplacing: Whether existing files are replaced.
  /// - Returns: The paths of the certificate and the key, and that of the list if one was replaced.
  /// - Throws: `.exists` if a file exists and `isReplacing` is `false`, `.system` or `.cryptography`.
  public func make(
    _ subject: DistinguishedName, days: Int64, at instant: Timestamp, isReplacing: Bool
  ) throws(ClientAuthorityError) -> [String] {
    let files = Files(certificate: certificatePath, key: keyPath)
    let hasList = NewFile.exists(revocationListPath)
    if !isReplacing {
      try refuseExisting(files)
      if hasList { throw .exists(revocationListPath) }
    }
    let (certificate, key) = try cryptographically { () throws(CryptographyError) in
      let key = try ECPrivateKey(.p256)
      let template = CertificateTemplate.clientAuthority(subject, key, Lifetime(from: instant, days: days))
      return (try template.selfSigned(with: key), key)
    }
    try NewFile.makeFolder(folder)
    try save(certificate, key, at: files, isReplacing: isReplacing)
    guard hasList else { return [files.certificate, files.key] }
    let authority = ClientIdentity(certificate: certificate, key: key)
    var list = emptyList(of: authority, at: instant)
    // The new authority can have the name of the old one, and so a reader can compare the numbers of both lists.
    list.number = ((try? revocationList())?.number ?? 0) + 1
    try save(list, of: authority)
    return [files.certificate, files.key, revocationListPath]
  }

  /// Issues a client certificate. It expires no later than the authority's certificate. A certificate that it replaces is
  /// revoked if there is a list of revoked certificates: its file is the only place that names it. That happens when the new
  /// files are on disk and need only their names, so that a full disk leaves the old certificate valid.
  ///
  /// - Returns: The paths of the certificate and the key.
  /// - Throws: `.unusableName`, `.exists` if a file exists and `isReplacing` is `false`, `.absent` or `.malformed` if
  ///   the authority cannot be read, `.system` or `.cryptography`.
  public func issue(
    _ client: String, _ subject: DistinguishedName, days: Int64, at instant: Timestamp, isReplacing: Bool
  ) throws(ClientAuthorityError) -> [String] {
    try Self.check(client)
    let authority = try identity(certificatePath, keyPath)
    let files = Files(certificate: certificatePath(of: client), key: keyPath(of: client))
    if !isReplacing { try refuseExisting(files) }
    let (new, key) = try cryptographically { () throws(CryptographyError) in
      let key = try ECPrivateKey(.p256)
      var lifetime = Lifetime(from: instant, days: days)
      lifetime.end = min(lifetime.end, authority.certificate.notAfter)
      let template = CertificateTemplate.client(subject, key, under: authority.certificate, lifetime)
      return (try template.signed(by: authority.certificate, key: authority.key), key)
    }
    try save(new, key, at: files, isReplacing: isReplacing) { () throws(ClientAuthorityError) in
      if isReplacing, NewFile.exists(revocationListPath), let old = try? certificate(files.certificate),
        old.issuanceFault(by: authority.certificate) == nil
      {
        _ = try revoke([client], at: instant)
      }
    }
    return [files.certificate, files.key]
  }

  /// Adds the certificates of `clients` to the list of revoked certificates, and makes the list if there is none. Without
  /// clients, an empty list is made, or the old one is signed again.
  ///
  /// The list is valid as long as the authority's certificate, because only this authority can renew it, and gates refuse
  /// every client once the list has ended. Of two calls at the same time, one may be lost.
  ///
  /// - Returns: The path of the list.
  /// - Throws: `.unusableName`, `.absent` or `.malformed` if a file cannot be read, `.foreign` if another authority issued
  ///   a certificate, `.system` or `.cryptography`. The list is unchanged then.
  public func revoke(_ clients: [String], at instant: Timestamp) throws(ClientAuthorityError) -> [String] {
    for client in clients { try Self.check(client) }
    let authority = try identity(certificatePath, keyPath)
    var list = emptyList(of: authority, at: instant)
    if NewFile.exists(revocationListPath) {
      let old = try revocationList()
      (list.entries, list.number) = (old.entries, old.number)
    }
    for client in clients {
      let path = certificatePath(of: client)
      let certificate = try certificate(path)
      guard certificate.issuanceFault(by: authority.certificate) == nil else { throw .foreign(path) }
      let entry = RevocationListTemplate.Entry(serialNumber: certificate.serialNumber, revokedAt: instant)
      if !list.entries.contains(where: { $0.serialNumber == entry.serialNumber }) { list.entries.append(entry) }
    }
    list.number += 1
    try save(list, of: authority)
    return [revocationListPath]
  }

  /// Returns a list without entries and with the number 0.
  private func emptyList(of authority: ClientIdentity, at instant: Timestamp) -> RevocationListTemplate {
    RevocationListTemplate(
      entries: [], number: 0, thisUpdate: Lifetime(from: instant, days: 0).start,
      nextUpdate: authority.certificate.notAfter)
  }

  private func save(_ list: RevocationListTemplate, of authority: ClientIdentity) throws(ClientAuthorityError) {
    let pem = try cryptographically { () throws(CryptographyError) in
      try list.signed(by: authority.certificate, key: authority.key)
    }
    try NewFile.write(Array(pem.utf8), to: revocationListPath, mode: 0o644, isReplacing: true)
  }

  private func revocationList() throws(ClientAuthorityError) -> RevocationListTemplate {
    let text = String(decoding: try NewFile.read(revocationListPath), as: UTF8.self)
    do throws(CryptographyError) {
      return try RevocationListTemplate(pem: text)
    } catch {
      throw .malformed(revocationListPath, reason: "\(error)")
    }
  }

  /// Reads the certificate and the private key of `client`.
  func identity(of client: String) throws(ClientAuthorityError) -> ClientIdentity {
    try Self.check(client)
    return try identity(certificatePath(of: client), keyPath(of: client))
  }

  func authorityCertificate() throws(ClientAuthorityError) -> Certificate { try certificate(certificatePath) }

  // MARK: Files

  /// The names of the authority's own files: an exported `crl.pem` would replace the list of revoked certificates.
  private static let reservedNames = ["ca", "crl"]

  private static func check(_ client: String) throws(ClientAuthorityError) {
    let isWord = client.utf8.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
        true
      default: false
      }
    }
    guard isWord, !client.isEmpty, !reservedNames.contains(client) else { throw .unusableName(client) }
  }

  /// The paths of a certificate and its key.
  private struct Files {
    let certificate: String
    let key: String
  }

  private func refuseExisting(_ files: Files) throws(ClientAuthorityError) {
    for path in [files.certificate, files.key] where NewFile.exists(path) { throw .exists(path) }
  }

  /// The key is placed first: a certificate without its key would look like a complete identity.
  ///
  /// - Parameter prepare: Called when both files are on disk, before they are placed. If it throws, they are discarded.
  private func save(
    _ certificate: Certificate, _ key: ECPrivateKey, at files: Files, isReplacing: Bool,
    preparing prepare: () throws(ClientAuthorityError) -> Void = {}
  ) throws(ClientAuthorityError) {
    let (pem, secret) = try cryptographically { () throws(CryptographyError) in (try certificate.pem, try key.pkcs8PEM)
    }
    var drafts: [(path: String, draft: String)] = []
    defer { for (_, draft) in drafts { NewFile.discard(draft) } }
    for (path, text, mode) in [(files.key, secret, UInt32(0o600)), (files.certificate, pem, 0o644)] {
      drafts.append((path, try NewFile.draft(Array(text.utf8), for: path, mode: mode)))
    }
    try prepare()
    for (path, draft) in drafts { try NewFile.place(draft, at: path, isReplacing: isReplacing) }
  }

  private func identity(_ certificatePath: String, _ keyPath: String) throws(ClientAuthorityError) -> ClientIdentity {
    let certificate = try certificate(certificatePath)
    let text = String(decoding: try NewFile.read(keyPath), as: UTF8.self)
    do throws(CryptographyError) {
      let key = try ECPrivateKey(pkcs8PEM: text)
      guard certificate.subjectPublicKeyInfo == key.spki else {
        throw .malformedPrivateKey("not the key of \(certificatePath)")
      }
      return ClientIdentity(certificate: certificate, key: key)
    } catch {
      throw .malformed(keyPath, reason: "\(error)")
    }
  }

  private func certificate(_ path: String) throws(ClientAuthorityError) -> Certificate {
    let text = String(decoding: try NewFile.read(path), as: UTF8.self)
    do throws(CryptographyError) {
      // The array is not empty: the parser throws if it finds no certificate.
      guard let first = try Certificate.certificates(pem: text).first else { throw .malformedPEM("no certificate") }
      return first
    } catch {
      throw .malformed(path, reason: "\(error)")
    }
  }
}

/// A certificate with its private key.
struct ClientIdentity: Sendable {
  let certificate: Certificate
  let key: ECPrivateKey
}

/// Runs `body` and turns a `CryptographyError` into `.cryptography`.
func cryptographically<Value>(
  _ body: () throws(CryptographyError) -> Value
) throws(ClientAuthorityError) -> Value {
  do throws(CryptographyError) { return try body() } catch { throw .cryptography("\(error)") }
}
