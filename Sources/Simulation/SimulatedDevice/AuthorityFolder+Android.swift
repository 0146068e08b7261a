internal import AttestClient
internal import ByteCoding
internal import Cryptography
internal import Foundation

// The part that vouches for Android devices. Folders of earlier versions do not have it.
extension AuthorityFolder {
  private static let rootName = "android-root.pem"
  private static let identitiesName = "android-authority.json"
  private static let statusListName = "android-status.json"

  /// Loads the part; `nil` if there is none.
  func android() throws(AuthorityFolderError) -> AndroidAuthority? {
    // The root is written last: with it, the part is complete. While it is added, it does not exist yet.
    guard let root = try text(Self.rootName) else {
      guard try text(Self.identitiesName) == nil || AtomicFileSet(folder: path).isHalfDone else {
        throw .incomplete(path, missing: Self.rootName)
      }
      return nil
    }
    guard let content = try text(Self.identitiesName) else { throw .incomplete(path, missing: Self.identitiesName) }
    guard let stored = try? JSONDecoder().decode(StoredAuthority.self, from: Data(content.utf8)) else {
      throw .malformed("\(file(Self.identitiesName)) is not an authority for Android devices")
    }
    do throws(CryptographyError) {
      if let authority = try stored.authority, try authority.root.certificate.pem == root { return authority }
    } catch {
      throw .malformed("\(file(Self.identitiesName)): \(error)")
    }
    throw .malformed("\(file(Self.identitiesName)) does not belong to \(Self.rootName)")
  }

  /// The files of the part.
  func files(of android: AndroidAuthority) throws(AuthorityFolderError) -> [AtomicFileSet.File] {
    let (stored, root) = try cryptographically { () throws(CryptographyError) in
      (try StoredAuthority(android), try android.root.certificate.pem)
    }
    let identities = JSONText.encoding(stored, isPretty: true) + "\n"
    return [
      .init(name: Self.statusListName, bytes: android.statusList(), mode: 0o644),
      .init(name: Self.identitiesName, bytes: Array(identities.utf8), mode: 0o600),
      .init(name: Self.rootName, bytes: Array(root.utf8), mode: 0o644),
    ]
  }

  /// Adds the part to an authority without it, and changes no other file. The folder is locked.
  func withAndroid(_ authority: TestAuthority, at instant: Timestamp) throws(AuthorityFolderError) -> TestAuthority {
    guard authority.android == nil else { return authority }
    let android = try cryptographically { () throws(CryptographyError) in try AndroidAuthority(at: instant) }
    try write(files(of: android))
    var authority = authority
    authority.android = android
    return authority
  }

  /// Enters certificates in the status list, as Google does with keys that were leaked. `serials` are in the form of
  /// `AndroidStatusList.text(ofSerial:)`. Other members of the file stay, such as the comments in a copy of Google's list.
  ///
  /// Returns how many of them are new. A gate with this list refuses their keys after its next refresh.
  public func revokeAndroidKeys(serials: [String]) throws(AuthorityFolderError) -> Int {
    let lock = try attempt { () throws(PrivateFile.AccessError) in try FileLock(path: path, waits: true) }
    defer { lock.release() }
    guard let content = try text(Self.statusListName) else {
      throw .incomplete(path, missing: Self.statusListName)
    }
    guard (try? JSONDecoder().decode(StatusList.self, from: Data(content.utf8))) != nil,
      var list = (try? JSONSerialization.jsonObject(with: Data(content.utf8))) as? [String: Any],
      var entries = list["entries"] as? [String: Any]
    else { throw .malformed("\(androidStatusListPath) is not a status list") }
    let before = entries.count
    for serial in serials {
      var entry = entries[serial] as? [String: Any] ?? [:]
      entry["status"] = "REVOKED"
      entry["reason"] = "KEY_COMPROMISE"
      entries[serial] = entry
    }
    list["entries"] = entries
    let options: JSONSerialization.WritingOptions = [.sortedKeys, .withoutEscapingSlashes]
    guard let bytes = try? JSONSerialization.data(withJSONObject: list, options: options) else {
      throw .malformed("\(androidStatusListPath) cannot be written again")
    }
    try attempt { () throws(PrivateFile.AccessError) in
      try PrivateFile.write(Array(bytes) + Array("\n".utf8), to: androidStatusListPath, mode: 0o644)
    }
    return entries.count - before
  }

  private struct StatusList: Decodable {
    struct Entry: Decodable {
      let status: String
      let reason: String?
    }
    let entries: [String: Entry]
  }
}

/// An authority for Android devices in its file. It has private keys.
private struct StoredAuthority: Codable {
  struct Identity: Codable {
    /// PEM.
    let certificate: String
    /// PKCS #8 in PEM.
    let key: String

    init(_ identity: SigningIdentity) throws(CryptographyError) {
      certificate = try identity.certificate.pem
      key = try identity.key.pkcs8PEM
    }

    /// `nil` if the key is another certificate's.
    func identity() throws(CryptographyError) -> SigningIdentity? {
      let (certificates, key) = (try Certificate.certificates(pem: certificate), try ECPrivateKey(pkcs8PEM: key))
      guard let first = certificates.first, first.subjectPublicKeyInfo == key.spki else { return nil }
      return SigningIdentity(certificate: first, key: key)
    }
  }

  let root, teeAuthority, teeKey, strongboxAuthority, strongboxKey, leakedKey, rkpAuthority, rkpServer: Identity

  init(_ authority: AndroidAuthority) throws(CryptographyError) {
    root = try Identity(authority.root)
    teeAuthority = try Identity(authority.trustedEnvironment.authority)
    teeKey = try Identity(authority.trustedEnvironment.key)
    strongboxAuthority = try Identity(authority.strongBox.authority)
    strongboxKey = try Identity(authority.strongBox.key)
    leakedKey = try Identity(authority.leakedKey)
    rkpAuthority = try Identity(authority.remoteAuthority)
    rkpServer = try Identity(authority.remoteServer)
  }

  /// `nil` if a key does not belong to its certificate.
  var authority: AndroidAuthority? {
    get throws(CryptographyError) {
      guard let root = try root.identity(), let teeAuthority = try teeAuthority.identity(),
        let teeKey = try teeKey.identity(), let strongboxAuthority = try strongboxAuthority.identity(),
        let strongboxKey = try strongboxKey.identity(), let leakedKey = try leakedKey.identity(),
        let rkpAuthority = try rkpAuthority.identity(), let rkpServer = try rkpServer.identity()
      else { return nil }
      return AndroidAuthority(
        root: root, trustedEnvironment: .init(authority: teeAuthority, key: teeKey),
        strongBox: .init(authority: strongboxAuthority, key: strongboxKey), leakedKey: leakedKey,
        remoteAuthority: rkpAuthority, remoteServer: rkpServer)
    }
  }
}
