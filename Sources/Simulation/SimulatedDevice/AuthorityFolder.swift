internal import AttestClient
public import ByteCoding
public import Cryptography
internal import Foundation

/// A test authority on disk: readable certificates, private keys for their owner only (0600), and `authority.json`,
/// which is written last and marks the folder as complete.
public struct AuthorityFolder: Sendable, Hashable {
  /// The path of the folder.
  public let path: String

  /// Creates a reference to a folder, which need not exist yet.
  public init(path: String) { self.path = path }

  /// The folder that `sallyport dev` uses unless another one is named, in the user's data folder (XDG Base Directory):
  /// `$XDG_DATA_HOME/sallyport/dev`. A shared folder is never used, because the folder holds private keys. `nil` if the
  /// environment names no place.
  public static func standard(_ environment: [String: String]) -> AuthorityFolder? {
    // The XDG specification requires that relative paths are ignored.
    func absolute(_ name: String) -> String? { environment[name].flatMap { $0.hasPrefix("/") ? $0 : nil } }
    let data = absolute("XDG_DATA_HOME") ?? absolute("HOME").map { $0 + "/.local/share" }
    return data.map { AuthorityFolder(path: $0 + "/sallyport/dev") }
  }

  /// Whether the folder has an authority, complete or not.
  public var isThere: Bool { FileManager.default.fileExists(atPath: file("authority.json")) }

  /// The path of the authority that a TLS client of the gate trusts.
  public var tlsAuthorityPath: String { file("tls-ca.pem") }

  /// The path of the development gate's certificate.
  public var serverCertificatePath: String { file("server.pem") }

  /// The path of the development gate's private key.
  public var serverKeyPath: String { file("server.key") }

  /// The path of the root that the gate trusts instead of Apple's.
  public var attestationRootPath: String { file("attestation-root.pem") }

  /// The path of the root of receipts.
  public var receiptRootPath: String { file("receipt-root.pem") }

  /// The path of the root that the gate trusts instead of Google's.
  public var androidRootPath: String { file("android-root.pem") }

  /// The path of the list of revoked attestation keys of Android devices, in place of Google's.
  public var androidStatusListPath: String { file("android-status.json") }

  /// The path of the private key that stands for one of a developer account, for requests to the simulated data service.
  public var developerKeyPath: String { file("developer-key.p8") }

  /// Loads the key at `developerKeyPath`. Makes it first if the folder, which must exist, has none.
  public func developerKey() throws(AuthorityFolderError) -> P256PrivateKey {
    let lock = try attempt { () throws(PrivateFile.AccessError) in try FileLock(path: path, waits: true) }
    defer { lock.release() }
    if let pem = try text("developer-key.p8") {
      return try cryptographically { () throws(CryptographyError) in try P256PrivateKey(pkcs8PEM: pem) }
    }
    let (key, pem) = try cryptographically { () throws(CryptographyError) in
      let key = try P256PrivateKey()
      return (key, try key.pkcs8PEM)
    }
    try write([.init(name: "developer-key.p8", bytes: Array(pem.utf8), mode: 0o600)])
    return key
  }

  /// Loads the authority. Makes it first if the folder is absent or empty, or if an earlier attempt was interrupted.
  ///
  /// If two processes do this at the same time, one makes the authority and both load it. A server certificate that
  /// expires within thirty days, or is not for all of `names`, is replaced. What vouches for Android devices is added to
  /// a folder without it. An authority that was made for another app is not changed; see `TestAuthority.appID`.
  public func loadOrMake(
    appID: String, names: ServerNames = .loopback, at instant: Timestamp
  ) throws(AuthorityFolderError) -> TestAuthority {
    try attempt { () throws(PrivateFile.AccessError) in try PrivateFile.makeFolder(path) }
    let lock = try attempt { () throws(PrivateFile.AccessError) in try FileLock(path: path, waits: true) }
    defer { lock.release() }
    try attempt { () throws(PrivateFile.AccessError) in try AtomicFileSet(folder: path).settle() }
    let content: [String]
    do { content = try FileManager.default.contentsOfDirectory(atPath: path) } catch { throw .unreadable("\(error)") }
    guard content.isEmpty else { return try renewed(withAndroid(load(), at: instant), names, at: instant) }
    let authority = try cryptographically { () throws(CryptographyError) in
      try TestAuthority(appID: appID, names: names, at: instant)
    }
    try save(authority)
    return authority
  }

  /// Loads the authority.
  ///
  /// - Throws: `.absent` if there is none, `.incomplete` if a part is missing, and `.halfDone` if a part is missing
  ///   or parts do not belong together because a change was interrupted.
  public func load() throws(AuthorityFolderError) -> TestAuthority {
    do throws(AuthorityFolderError) {
      return try loadAsItIs()
    } catch {
      switch error {
      case .incomplete, .malformed: if AtomicFileSet(folder: path).isHalfDone { throw .halfDone(path) }
      case .absent, .halfDone, .unreadable, .unwritable: throw error
      }
    }
    // A change may have been completed between reading and this question.
    return try loadAsItIs()
  }

  private func loadAsItIs() throws(AuthorityFolderError) -> TestAuthority {
    guard let description = try text("authority.json") else {
      throw Self.names.contains { FileManager.default.fileExists(atPath: file($0)) }
        ? .incomplete(path, missing: "authority.json") : .absent(path)
    }
    guard let description = try? JSONDecoder().decode(Description.self, from: Data(description.utf8)) else {
      throw .malformed("\(file("authority.json")) is not the description of an authority")
    }
    guard description.version == Description.current else {
      throw .malformed("\(file("authority.json")) has version \(description.version), not \(Description.current)")
    }
    return TestAuthority(
      appID: description.appId,
      attestationRoot: try identity("attestation-root"),
      attestationIntermediate: try identity("attestation-intermediate"),
      receiptRoot: try identity("receipt-root"),
      receiptIntermediate: try identity("receipt-intermediate"),
      receiptSigner: try identity("receipt-signer"),
      tlsAuthority: try identity("tls-ca"),
      server: try identity("server"),
      android: try android())
  }

  /// Writes `authority` completely or not at all, its description last.
  public func save(_ authority: TestAuthority) throws(AuthorityFolderError) {
    let identities = [
      (authority.attestationRoot, "attestation-root"), (authority.attestationIntermediate, "attestation-intermediate"),
      (authority.receiptRoot, "receipt-root"), (authority.receiptIntermediate, "receipt-intermediate"),
      (authority.receiptSigner, "receipt-signer"), (authority.tlsAuthority, "tls-ca"), (authority.server, "server"),
    ]
    var files: [AtomicFileSet.File] = []
    for (identity, name) in identities { files += try self.files(of: identity, as: name) }
    if let android = authority.android { files += try self.files(of: android) }
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    guard let description = try? encoder.encode(Description(appId: authority.appID)) else {
      throw .malformed("the app ID \(authority.appID) cannot be written as JSON")
    }
    files.append(.init(name: "authority.json", bytes: [UInt8](description) + [UInt8(ascii: "\n")], mode: 0o644))
    try write(files)
  }

  private func renewed(
    _ authority: TestAuthority, _ names: ServerNames, at instant: Timestamp
  ) throws(AuthorityFolderError) -> TestAuthority {
    let certificate = authority.server.certificate
    let expiresSoon = certificate.notAfter < instant.advanced(by: .seconds(30 * 86400))
    guard expiresSoon || !names.areCovered(by: certificate) else { return authority }
    // The old host names stay, so that a start with one name does not end the use of another. Addresses change by
    // themselves, and would become ever more.
    let names = names.adding(to: ServerNames(hosts: certificate.dnsNames))
    var authority = authority
    try cryptographically { () throws(CryptographyError) in try authority.renewServer(names: names, at: instant) }
    try write(files(of: authority.server, as: "server"))
    return authority
  }
}

/// Why there is no authority in a folder.
public enum AuthorityFolderError: Error, Sendable, Hashable {
  /// The folder contains no authority.
  case absent(String)
  /// The folder has some of its files but not this one, which was removed.
  case incomplete(String, missing: String)
  /// A process ended while it was changing the folder, or is changing it now; `loadOrMake` completes that.
  case halfDone(String)
  /// A file cannot be read. The value is the reason.
  case unreadable(String)
  /// A file or the folder cannot be written. The value is the reason.
  case unwritable(String)
  /// A file does not contain what it should. The value is the reason.
  case malformed(String)
}

extension AuthorityFolderError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .absent(let path): "no authority in \(path)"
    case .incomplete(let path, let missing): "the authority in \(path) is incomplete: \(missing) is missing"
    case .halfDone(let path): "a change of the authority in \(path) was not completed"
    case .unreadable(let reason), .unwritable(let reason), .malformed(let reason): reason
    }
  }

  /// What a person can do.
  public var hint: String {
    switch self {
    case .absent: "`sallyport dev` makes one; name its folder"
    case .incomplete, .malformed: "remove the folder, or name another one, and let `sallyport dev` create it again"
    case .halfDone: "start `sallyport dev` with this folder again: it completes the change"
    case .unreadable, .unwritable: "check that the folder is yours and that its disk has room"
    }
  }
}

extension AuthorityFolder {
  private static let names = [
    "attestation-root", "attestation-intermediate", "receipt-root", "receipt-intermediate", "receipt-signer", "tls-ca",
    "server",
  ].flatMap { ["\($0).pem", "\($0).key"] }

  private struct Description: Codable {
    // Files for Android were added without a new version: older programs ignore them.
    static let current = 1
    var version = Self.current
    var environment = "development"
    /// `TEAM.bundle`.
    let appId: String
  }

  func file(_ name: String) -> String { "\(path)/\(name)" }

  private func identity(_ name: String) throws(AuthorityFolderError) -> SigningIdentity {
    guard let certificate = try text("\(name).pem") else { throw .incomplete(path, missing: "\(name).pem") }
    guard let key = try text("\(name).key") else { throw .incomplete(path, missing: "\(name).key") }
    do throws(CryptographyError) {
      let key = try ECPrivateKey(pkcs8PEM: key)
      let certificates = try Certificate.certificates(pem: certificate)
      if let certificate = certificates.first, certificate.subjectPublicKeyInfo == key.spki {
        return SigningIdentity(certificate: certificate, key: key)
      }
    } catch {
      throw .malformed("\(file(name)).pem or .key: \(error)")
    }
    throw .malformed("\(file(name)).key is not the key of \(name).pem")
  }

  private func files(
    of identity: SigningIdentity, as name: String
  ) throws(AuthorityFolderError) -> [AtomicFileSet.File] {
    let (key, certificate) = try cryptographically { () throws(CryptographyError) in
      (try identity.key.pkcs8PEM, try identity.certificate.pem)
    }
    return [
      .init(name: "\(name).key", bytes: Array(key.utf8), mode: 0o600),
      .init(name: "\(name).pem", bytes: Array(certificate.utf8), mode: 0o644),
    ]
  }

  func write(_ files: [AtomicFileSet.File]) throws(AuthorityFolderError) {
    try attempt { () throws(PrivateFile.AccessError) in
      try PrivateFile.makeFolder(path)
      try AtomicFileSet(folder: path).write(files)
    }
  }

  func text(_ name: String) throws(AuthorityFolderError) -> String? {
    do throws(PrivateFile.AccessError) {
      return String(decoding: try PrivateFile.read(file(name)), as: UTF8.self)
    } catch {
      if error.isAbsence { return nil }
      throw .unreadable("\(error)")
    }
  }

  func attempt<Value>(_ body: () throws(PrivateFile.AccessError) -> Value) throws(AuthorityFolderError) -> Value {
    do throws(PrivateFile.AccessError) { return try body() } catch { throw .unwritable("\(error)") }
  }

  func cryptographically<Value>(
    _ body: () throws(CryptographyError) -> Value
  ) throws(AuthorityFolderError) -> Value {
    do throws(CryptographyError) { return try body() } catch { throw .malformed("\(error)") }
  }
}
