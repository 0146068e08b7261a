import AndroidKeyAttestation
import ByteCoding
import Cryptography
import Foundation
import SimulatedDevice
import Testing

/// Calls `body` with a path for a new folder, and removes the folder afterwards.
func withFolder<Value>(_ body: (String) throws -> Value) throws -> Value {
  let folder = FileManager.default.temporaryDirectory.path + "/authority-\(UUID().uuidString)"
  defer { try? FileManager.default.removeItem(atPath: folder) }
  return try body(folder)
}

@Suite("Test authorities")
struct AuthorityTests {
  static let now = Timestamp(seconds: 1_780_000_000)
  static let appID = "AAABBBCCC1.com.example.app"

  @Test("The chains of an authority lead only to its own roots")
  func chains() throws {
    let authority = try TestAuthority(appID: Self.appID, at: Self.now)
    let chains: [(leaf: SigningIdentity, intermediates: [SigningIdentity], root: SigningIdentity)] = [
      (authority.receiptSigner, [authority.receiptIntermediate], authority.receiptRoot),
      (authority.server, [], authority.tlsAuthority),
      (try authority.clientIdentity(commonName: "Debug", at: Self.now), [], authority.tlsAuthority),
    ]
    for chain in chains {
      let intermediates = chain.intermediates.map(\.certificate)
      let validator = ChainValidator(roots: [chain.root.certificate])
      _ = try validator.validate(leaf: chain.leaf.certificate, intermediates: intermediates, at: Self.now)
      #expect(throws: ChainRejection.self) {
        try ChainValidator(roots: [authority.attestationRoot.certificate])
          .validate(leaf: chain.leaf.certificate, intermediates: intermediates, at: Self.now)
      }
    }
  }

  @Test("An authority is created once and loaded unchanged from its folder")
  func roundTrip() throws {
    try withFolder { path in
      let folder = AuthorityFolder(path: path)
      let made = try folder.loadOrMake(appID: Self.appID, at: Self.now)
      let loaded = try folder.load()
      let again = try folder.loadOrMake(appID: Self.appID, at: Self.now)
      for other in [loaded, again] {
        #expect(other.appID == Self.appID)
        #expect(identities(of: other).map(\.certificate) == identities(of: made).map(\.certificate))
        #expect(identities(of: other).map(\.key.spki) == identities(of: made).map(\.key.spki))
      }
    }
  }

  @Test("Only the owner of the folder can read the private keys")
  func modes() throws {
    try withFolder { path in
      _ = try AuthorityFolder(path: path).loadOrMake(appID: Self.appID, at: Self.now)
      let names = try FileManager.default.contentsOfDirectory(atPath: path)
      #expect(names.count == 18)
      for name in names {
        let mode = try FileManager.default.attributesOfItem(atPath: "\(path)/\(name)")[.posixPermissions] as? Int
        let isSecret = name.hasSuffix(".key") || name == "android-authority.json"
        #expect(mode == (isSecret ? 0o600 : 0o644), "\(name)")
      }
      #expect(try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int == 0o700)
    }
  }

  @Test("Another name replaces the server's certificate, and nothing else; the old host names stay")
  func names() throws {
    try withFolder { path in
      let folder = AuthorityFolder(path: path)
      let first = try folder.loadOrMake(appID: Self.appID, at: Self.now)
      #expect(first.server.certificate.dnsNames == ["localhost"])
      #expect(first.server.certificate.ipAddresses == ServerNames.loopback.addresses)
      let named = ServerNames(hosts: ["gate.local"], addresses: [[192, 0, 2, 7]])
      let second = try folder.loadOrMake(appID: Self.appID, names: named, at: Self.now)
      #expect(second.server.certificate.dnsNames == ["localhost", "gate.local"])
      #expect(second.server.certificate.ipAddresses == ServerNames.loopback.addresses + [[192, 0, 2, 7]])
      #expect(second.tlsAuthority.certificate == first.tlsAuthority.certificate)
      // All of these names are covered.
      for covered in [named, .loopback, ServerNames(hosts: ["gate.local"])] {
        let third = try folder.loadOrMake(appID: Self.appID, names: covered, at: Self.now)
        #expect(third.server.certificate == second.server.certificate)
      }
      let moved = ServerNames(hosts: ["other.local"], addresses: [[192, 0, 2, 8]])
      let fourth = try folder.loadOrMake(appID: Self.appID, names: moved, at: Self.now)
      #expect(Set(fourth.server.certificate.dnsNames) == ["localhost", "gate.local", "other.local"])
      #expect(fourth.server.certificate.ipAddresses == ServerNames.loopback.addresses + [[192, 0, 2, 8]])
    }
  }

  @Test("Of several concurrent callers, one creates the authority")
  func concurrent() async throws {
    let path = FileManager.default.temporaryDirectory.path + "/authority-\(UUID().uuidString)"
    defer { try? FileManager.default.removeItem(atPath: path) }
    let fingerprints = try await withThrowingTaskGroup(of: [UInt8].self) { group in
      for _ in 0..<4 {
        group.addTask {
          try AuthorityFolder(path: path).loadOrMake(appID: Self.appID, at: Self.now).server.certificate.fingerprint
        }
      }
      return try await group.reduce(into: Set()) { $0.insert($1) }
    }
    #expect(fingerprints.count == 1)
  }

  @Test(
    "An authority with a missing file is neither used nor created again",
    arguments: [
      "server.key", "attestation-intermediate.pem", "receipt-signer.key", "authority.json", "android-root.pem",
      "android-authority.json",
    ])
  func incomplete(name: String) throws {
    try withFolder { path in
      let folder = AuthorityFolder(path: path)
      _ = try folder.loadOrMake(appID: Self.appID, at: Self.now)
      try FileManager.default.removeItem(atPath: "\(path)/\(name)")
      let expected = AuthorityFolderError.incomplete(path, missing: name)
      #expect(throws: expected) { try folder.load() }
      #expect(throws: expected) { try folder.loadOrMake(appID: Self.appID, at: Self.now) }
      #expect(!FileManager.default.fileExists(atPath: "\(path)/\(name)"))
    }
  }

  @Test(
    "An authority with a damaged file is refused",
    arguments: [
      ("server.key", "not a key"), ("tls-ca.pem", ""), ("authority.json", "{}"), ("android-authority.json", "{}"),
      ("android-root.pem", ""),
      ("authority.json", #"{"appId":"A.b","environment":"development","version":2}"#),
    ])
  func damaged(name: String, content: String) throws {
    try withFolder { path in
      let folder = AuthorityFolder(path: path)
      _ = try folder.loadOrMake(appID: Self.appID, at: Self.now)
      try Data(content.utf8).write(to: URL(fileURLWithPath: "\(path)/\(name)"))
      let error = #expect(throws: AuthorityFolderError.self) { try folder.load() }
      guard case .malformed(let reason) = error else {
        Issue.record("\(String(describing: error))")
        return
      }
      #expect(reason.contains(name.split(separator: ".")[0]))
    }
  }

  @Test("An authority with the key of another certificate is refused")
  func mixed() throws {
    try withFolder { path in
      let folder = AuthorityFolder(path: path)
      _ = try folder.loadOrMake(appID: Self.appID, at: Self.now)
      let manager = FileManager.default
      try manager.removeItem(atPath: "\(path)/server.key")
      try manager.copyItem(atPath: "\(path)/tls-ca.key", toPath: "\(path)/server.key")
      #expect(throws: AuthorityFolderError.self) { try folder.load() }
    }
  }

  @Test("An interrupted creation is repeated, and an interrupted renewal is completed")
  func interrupted() throws {
    try withFolder { path in
      let manager = FileManager.default
      let folder = AuthorityFolder(path: path)
      try manager.createDirectory(atPath: "\(path)/.begun", withIntermediateDirectories: true)
      try Data("half".utf8).write(to: URL(fileURLWithPath: "\(path)/.begun/tls-ca.key.7.1.tmp"))
      let made = try folder.loadOrMake(appID: Self.appID, at: Self.now)
      #expect(try manager.contentsOfDirectory(atPath: path).count == 18)

      // A renewal of which only the key was moved to its destination.
      let later = Self.now.advanced(by: .seconds(340 * 86400))
      var renewed = made
      try renewed.renewServer(at: later)
      try manager.createDirectory(atPath: "\(path)/.written", withIntermediateDirectories: true)
      try Data(renewed.server.key.pkcs8PEM.utf8).write(to: URL(fileURLWithPath: "\(path)/server.key"))
      try Data(renewed.server.certificate.pem.utf8).write(to: URL(fileURLWithPath: "\(path)/.written/server.pem"))
      #expect(throws: AuthorityFolderError.halfDone(path)) { try folder.load() }
      let loaded = try folder.loadOrMake(appID: Self.appID, at: later)
      #expect(loaded.server.certificate == renewed.server.certificate)
      #expect(try manager.contentsOfDirectory(atPath: path).count == 18)
    }
  }

  @Test("A missing folder and a folder with other files contain no authority")
  func absent() throws {
    try withFolder { path in
      #expect(throws: AuthorityFolderError.absent(path)) { try AuthorityFolder(path: path).load() }
      try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
      try Data().write(to: URL(fileURLWithPath: "\(path)/notes.txt"))
      #expect(throws: AuthorityFolderError.absent(path)) {
        try AuthorityFolder(path: path).loadOrMake(appID: Self.appID, at: Self.now)
      }
    }
  }

  @Test("The server's certificate is renewed before it expires", arguments: [(300, false), (340, true), (500, true)])
  func renewal(days: Int64, isRenewed: Bool) throws {
    try withFolder { path in
      let folder = AuthorityFolder(path: path)
      let made = try folder.loadOrMake(appID: Self.appID, at: Self.now)
      let later = Self.now.advanced(by: .seconds(days * 86400))
      let loaded = try folder.loadOrMake(appID: Self.appID, at: later)
      #expect((loaded.server.certificate != made.server.certificate) == isRenewed)
      #expect(loaded.tlsAuthority.certificate == made.tlsAuthority.certificate)
      #expect(try folder.load().server.certificate == loaded.server.certificate)
    }
  }

  @Test("What vouches for Android devices is added to a folder without it, once, and nothing else changes")
  func addedAndroid() async throws {
    let path = FileManager.default.temporaryDirectory.path + "/authority-\(UUID().uuidString)"
    defer { try? FileManager.default.removeItem(atPath: path) }
    let (manager, folder) = (FileManager.default, AuthorityFolder(path: path))
    _ = try folder.loadOrMake(appID: Self.appID, at: Self.now)
    for name in try manager.contentsOfDirectory(atPath: path) where name.hasPrefix("android-") {
      try manager.removeItem(atPath: "\(path)/\(name)")
    }
    #expect(try folder.load().android == nil)
    let before = try contents(of: path)
    let roots = try await withThrowingTaskGroup(of: [UInt8]?.self) { group in
      for _ in 0..<4 {
        group.addTask {
          // Readers do not wait for the lock: they see the part as a whole or not at all.
          for _ in 0..<20 { _ = try AuthorityFolder(path: path).load() }
          let authority = try AuthorityFolder(path: path).loadOrMake(appID: Self.appID, at: Self.now)
          return authority.android?.root.certificate.fingerprint
        }
      }
      return try await group.reduce(into: Set()) { $0.insert($1) }
    }
    #expect(roots.count == 1 && !roots.contains(nil))
    let after = try contents(of: path)
    #expect(after.count == 18)
    #expect(after.filter { !$0.key.hasPrefix("android-") } == before)
  }

  @Test("An interrupted addition for Android is completed or repeated")
  func interruptedAndroid() throws {
    try withFolder { path in
      let (manager, folder) = (FileManager.default, AuthorityFolder(path: path))
      let made = try folder.loadOrMake(appID: Self.appID, at: Self.now)
      // Everything is written, and the first file was moved.
      try manager.createDirectory(atPath: "\(path)/.written", withIntermediateDirectories: false)
      for name in ["android-root.pem", "android-authority.json"] {
        try manager.moveItem(atPath: "\(path)/\(name)", toPath: "\(path)/.written/\(name)")
      }
      #expect(try folder.load().android == nil)
      let completed = try folder.loadOrMake(appID: Self.appID, at: Self.now)
      #expect(identities(of: completed).map(\.certificate) == identities(of: made).map(\.certificate))
      // Not everything is written.
      for name in ["android-root.pem", "android-authority.json", "android-status.json"] {
        try manager.removeItem(atPath: "\(path)/\(name)")
      }
      try manager.createDirectory(atPath: "\(path)/.begun", withIntermediateDirectories: false)
      try Data("half".utf8).write(to: URL(fileURLWithPath: "\(path)/.begun/android-status.json"))
      let repeated = try folder.loadOrMake(appID: Self.appID, at: Self.now)
      #expect(repeated.android != nil)
      #expect(repeated.tlsAuthority.certificate == made.tlsAuthority.certificate)
      #expect(try manager.contentsOfDirectory(atPath: path).count == 18)
    }
  }

  @Test("Keys are entered in the status list, which names the leaked key from the beginning")
  func statusList() throws {
    try withFolder { path in
      let folder = AuthorityFolder(path: path)
      let android = try #require(try folder.loadOrMake(appID: Self.appID, at: Self.now).android)
      let list = {
        try AndroidStatusList([UInt8](Data(contentsOf: URL(fileURLWithPath: folder.androidStatusListPath))))
      }
      let (leaked, factory) = (
        android.leakedKey.certificate.serialNumber, android.trustedEnvironment.key.certificate.serialNumber
      )
      #expect(try list().reason(forSerial: leaked) == "KEY_COMPROMISE")
      #expect(try list().reason(forSerial: factory) == nil)
      let serial = AndroidStatusList.text(ofSerial: factory)
      #expect(try folder.revokeAndroidKeys(serials: [serial]) == 1)
      #expect(try folder.revokeAndroidKeys(serials: [serial]) == 0)
      #expect(try list().reason(forSerial: factory) == "KEY_COMPROMISE")
      #expect(try list().reason(forSerial: leaked) == "KEY_COMPROMISE")
      #expect(try list().count == 2)

      // Members that this program does not know, as in a copy of Google's list.
      let entries =
        #""entries":{"\#(serial)":{"comment":"a/b","status":"SUSPENDED"},"7":{"expires":"2030-01-01","status":"REVOKED"}}"#
      try Data((#"{\#(entries),"generated":12,"more":[null,true]}"#).utf8).write(
        to: URL(fileURLWithPath: folder.androidStatusListPath))
      #expect(try folder.revokeAndroidKeys(serials: [serial, "8"]) == 1)
      #expect(try list().reason(forSerial: factory) == "KEY_COMPROMISE")
      let written = try String(contentsOfFile: folder.androidStatusListPath, encoding: .utf8)
      for part in [
        #""\#(serial)":{"comment":"a/b","reason":"KEY_COMPROMISE","status":"REVOKED"}"#,
        #""7":{"expires":"2030-01-01","status":"REVOKED"}"#, #""generated":12,"more":[null,true]}"#,
      ] {
        #expect(written.contains(part), "\(written)")
      }

      try Data("{".utf8).write(to: URL(fileURLWithPath: folder.androidStatusListPath))
      #expect(throws: AuthorityFolderError.self) { try folder.revokeAndroidKeys(serials: [serial]) }
    }
  }

  private func contents(of folder: String) throws -> [String: Data] {
    var contents: [String: Data] = [:]
    for name in try FileManager.default.contentsOfDirectory(atPath: folder) {
      contents[name] = try Data(contentsOf: URL(fileURLWithPath: "\(folder)/\(name)"))
    }
    return contents
  }

  private func identities(of authority: AndroidAuthority) -> [SigningIdentity] {
    [
      authority.root, authority.trustedEnvironment.authority, authority.trustedEnvironment.key,
      authority.strongBox.authority, authority.strongBox.key, authority.leakedKey, authority.remoteAuthority,
      authority.remoteServer,
    ]
  }

  private func identities(of authority: TestAuthority) -> [SigningIdentity] {
    [
      authority.attestationRoot, authority.attestationIntermediate, authority.receiptRoot,
      authority.receiptIntermediate, authority.receiptSigner, authority.tlsAuthority, authority.server,
    ] + (authority.android.map(identities(of:)) ?? [])
  }
}

@Suite("Keys in a folder")
struct FolderKeyStoreTests {
  @Test("Keys are loaded as they were saved, and only their owner can read them")
  func roundTrip() throws {
    try withFolder { path in
      try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
      let store = FolderKeyStore(folder: path)
      var key = SimulatedKey(keyID: Base64.encode([UInt8](repeating: 0xFB, count: 32)), privateKeyPEM: "secret")
      #expect(try store.key(key.keyID) == nil)
      try store.save(key)
      key.signCount = 7
      key.isAttested = true
      try store.save(key)
      #expect(try store.key(key.keyID) == key)
      let names = try FileManager.default.contentsOfDirectory(atPath: path)
      #expect(names == [String(repeating: "fb", count: 32) + ".json"])
      let mode = try FileManager.default.attributesOfItem(atPath: "\(path)/\(names[0])")[.posixPermissions] as? Int
      #expect(mode == 0o600)
    }
  }

  @Test("An invalid key ID is not used as a file name", arguments: ["", "../x", "AAAA", "not base64"])
  func invalidNames(keyID: String) throws {
    #expect(try FolderKeyStore(folder: "/nowhere").key(keyID) == nil)
  }
}
