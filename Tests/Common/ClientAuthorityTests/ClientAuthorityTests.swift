import ByteCoding
import Cryptography
import Foundation
import TestSupport
import Testing

private let now = Timestamp(seconds: 1_780_000_000)
private let year: Int64 = 365

/// Calls `body` with an authority in a temporary folder and removes the folder afterwards.
private func withAuthority<R>(_ body: (ClientAuthority) async throws -> R) async throws -> R {
  try await Places.withTemporaryFolder { try await body(ClientAuthority(folder: $0 + "/config/client-ca")) }
}

private func permissions(_ path: String) throws -> Int? {
  try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
}

@Suite("Authorities for client certificates", .timeLimit(.minutes(2)))
struct ClientAuthorityTests {
  @Test("Certificates chain to the authority, are for TLS clients only, and only their owner can read the keys")
  func issue() async throws {
    try await withAuthority { authority in
      let made = try authority.make(DistinguishedName(.commonName("Debug CA")), days: 3650, at: now, isReplacing: false)
      let issued = try authority.issue(
        "client", DistinguishedName(.commonName("Debug Client"), .organization("Org")), days: year, at: now,
        isReplacing: false)
      #expect(made == [authority.certificatePath, authority.keyPath])
      #expect(issued == [authority.certificatePath(of: "client"), authority.keyPath(of: "client")])
      #expect(try issued.map(permissions) == [0o644, 0o600] && made.map(permissions) == [0o644, 0o600])

      let root = try certificate(authority.certificatePath)
      let leaf = try certificate(issued[0])
      #expect(leaf.subject == "O=Org,CN=Debug Client")
      let validator = ChainValidator(roots: [root])
      _ = try validator.validate(leaf: leaf, intermediates: [], at: now)
      // The leaf cannot act as an authority: a certificate below it is refused.
      #expect(leaf.issuanceFault(by: root) == nil && root.isAuthority && !leaf.isAuthority)
      let (_, text, _) = try await openssl("x509", "-in", issued[0], "-noout", "-purpose")
      #expect(text.contains("SSL client : Yes") && text.contains("SSL server : No"))
    }
  }

  @Test("A revoked certificate is in the list that openssl accepts, once, and the list counts up")
  func revoke() async throws {
    try await withAuthority { authority in
      _ = try authority.make(DistinguishedName(.commonName("CA")), days: 3650, at: .now(), isReplacing: false)
      for client in ["alice", "bob"] {
        _ = try authority.issue(
          client, DistinguishedName(.commonName(client)), days: 1, at: .now(), isReplacing: false)
      }
      /// Whether openssl accepts Alice's certificate, and Bob's.
      func accepted() async throws -> [Bool] {
        let arguments = ["-crl_check", "-CAfile", authority.certificatePath, "-CRLfile", authority.revocationListPath]
        var verdicts: [Bool] = []
        for client in ["alice", "bob"] {
          let path = authority.certificatePath(of: client)
          verdicts.append(try await openssl(["verify"] + arguments + [path]).exit == .code(0))
        }
        return verdicts
      }
      #expect(try authority.revoke([], at: .now()) == [authority.revocationListPath])
      #expect(try await accepted() == [true, true])
      for _ in 0..<2 { _ = try authority.revoke(["alice"], at: .now()) }
      #expect(try await accepted() == [false, true])
      let (_, text, _) = try await openssl("crl", "-in", authority.revocationListPath, "-noout", "-text")
      #expect(text.filter { $0.contains("Serial Number:") }.count == 1)
      #expect(text.contains { $0.contains("X509v3 CRL Number") } && text.contains { $0.hasSuffix(" 3") })
      _ = try authority.revoke(["bob"], at: .now())
      #expect(try await accepted() == [false, false])
      #expect(try permissions(authority.revocationListPath) == 0o644)
      // A certificate that is issued again: the lost one counts no more.
      let old = authority.folder + "/old.crt"
      for _ in 0..<2 {
        _ = try authority.issue(
          "carol", DistinguishedName(.commonName("carol")), days: 1, at: .now(), isReplacing: true)
        if !FileManager.default.fileExists(atPath: old) {
          try FileManager.default.copyItem(atPath: authority.certificatePath(of: "carol"), toPath: old)
        }
      }
      let lists = ["-crl_check", "-CAfile", authority.certificatePath, "-CRLfile", authority.revocationListPath]
      #expect(try await openssl(["verify"] + lists + [old]).exit != .code(0))
      #expect(try await openssl(["verify"] + lists + [authority.certificatePath(of: "carol")]).exit == .code(0))
    }
  }

  @Test("If the files of a new certificate cannot be written, the old one is not revoked, and nothing is left behind")
  func failedReplacement() async throws {
    try await withAuthority { authority in
      _ = try authority.make(DistinguishedName(.commonName("CA")), days: 9, at: now, isReplacing: false)
      // The longest name of a file: the file that would become it has a longer one.
      let client = String(repeating: "a", count: 251)
      let issued = try authority.issue(
        "alice", DistinguishedName(.commonName("alice")), days: 1, at: now, isReplacing: false)
      try FileManager.default.copyItem(atPath: issued[0], toPath: authority.certificatePath(of: client))
      _ = try authority.revoke([], at: now)
      let before = try contents(authority.folder)
      let fault = ClientAuthorityError.system(.write, path: authority.keyPath(of: client), code: ENAMETOOLONG)
      #expect(throws: fault) {
        try authority.issue(client, DistinguishedName(.commonName("alice")), days: 1, at: now, isReplacing: true)
      }
      #expect(try contents(authority.folder) == before)
    }
  }

  @Test("A new authority in place of an old one replaces its list, which would refuse every client")
  func replacedList() async throws {
    try await withAuthority { authority in
      let name = DistinguishedName(.commonName("CA"))
      _ = try authority.make(name, days: 3650, at: .now(), isReplacing: false)
      _ = try authority.issue("alice", DistinguishedName(.commonName("alice")), days: 1, at: .now(), isReplacing: false)
      _ = try authority.revoke(["alice"], at: .now())
      let made = try authority.make(name, days: 3650, at: .now(), isReplacing: true)
      #expect(made == [authority.certificatePath, authority.keyPath, authority.revocationListPath])
      let issued = try authority.issue(
        "alice", DistinguishedName(.commonName("alice")), days: 1, at: .now(), isReplacing: true)
      let lists = ["-crl_check", "-CAfile", authority.certificatePath, "-CRLfile", authority.revocationListPath]
      #expect(try await openssl(["verify"] + lists + [issued[0]]).exit == .code(0))
      let (_, text, _) = try await openssl("crl", "-in", authority.revocationListPath, "-noout", "-text")
      #expect(!text.contains { $0.contains("Serial Number:") } && text.contains { $0.hasSuffix(" 2") })
      // The new authority continues its list.
      _ = try authority.revoke(["alice"], at: .now())
      #expect(try await openssl(["verify"] + lists + [issued[0]]).exit != .code(0))

      // A list that is left alone, and one that is damaged.
      for path in made[..<2] { try FileManager.default.removeItem(atPath: path) }
      #expect(throws: ClientAuthorityError.exists(authority.revocationListPath)) {
        try authority.make(name, days: 3650, at: .now(), isReplacing: false)
      }
      try Data("no list".utf8).write(to: URL(fileURLWithPath: authority.revocationListPath))
      #expect(try authority.make(name, days: 3650, at: .now(), isReplacing: true) == made)
      #expect(try authority.revoke([], at: .now()) == [authority.revocationListPath])
    }
  }

  @Test("A certificate of another authority, a missing one and a damaged list are refused, and the list stays")
  func refusedRevocation() async throws {
    try await withAuthority { authority in
      _ = try authority.make(DistinguishedName(.commonName("CA")), days: 9, at: now, isReplacing: false)
      _ = try authority.issue("old", DistinguishedName(.commonName("old")), days: 1, at: now, isReplacing: false)
      _ = try authority.make(DistinguishedName(.commonName("CA")), days: 9, at: now, isReplacing: true)
      let list = try authority.revoke([], at: now)[0]
      let before = try Data(contentsOf: URL(fileURLWithPath: list))
      let path = authority.certificatePath(of: "old")
      #expect(throws: ClientAuthorityError.foreign(path)) { try authority.revoke(["old"], at: now) }
      #expect(throws: ClientAuthorityError.absent(authority.certificatePath(of: "none"))) {
        try authority.revoke(["none"], at: now)
      }
      #expect(throws: ClientAuthorityError.unusableName("../x")) { try authority.revoke(["../x"], at: now) }
      #expect(try Data(contentsOf: URL(fileURLWithPath: list)) == before)
      try Data("no list".utf8).write(to: URL(fileURLWithPath: list))
      #expect { try authority.revoke([], at: now) } throws: { error in
        if case .malformed(list, _)? = error as? ClientAuthorityError { true } else { false }
      }
    }
  }

  @Test("An authority is not created if a file has the name of its folder")
  func fileForFolder() async throws {
    try await Places.withTemporaryFolder { folder in
      try Data().write(to: URL(fileURLWithPath: folder + "/ca"))
      let authority = ClientAuthority(folder: folder + "/ca")
      #expect(throws: ClientAuthorityError.system(.createFolder, path: folder + "/ca", code: ENOTDIR)) {
        try authority.make(DistinguishedName(.commonName("CA")), days: 1, at: now, isReplacing: false)
      }
    }
  }

  @Test("An authority that openssl created issues certificates, so the guide's commands can be mixed")
  func guideAuthority() async throws {
    try await withAuthority { authority in
      try FileManager.default.createDirectory(atPath: authority.folder, withIntermediateDirectories: true)
      let (exit, _, errors) = try await openssl(
        "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", authority.keyPath, "-x509",
        "-days", "3650", "-subj", "/CN=MudApp Debug CA/O=YourOrg", "-out", authority.certificatePath)
      #expect(exit == .code(0), "\(errors)")
      let issued = try authority.issue(
        "client", DistinguishedName(.commonName("x")), days: 1, at: .now(), isReplacing: false)
      let (_, verdict, _) = try await openssl(
        "verify", "-purpose", "sslclient", "-CAfile", authority.certificatePath, issued[0])
      #expect(verdict == [issued[0] + ": OK"])
    }
  }

  @Test("No certificate is valid longer than its authority")
  func lifetime() async throws {
    try await withAuthority { authority in
      _ = try authority.make(DistinguishedName(.commonName("CA")), days: 30, at: now, isReplacing: false)
      let issued = try authority.issue(
        "a", DistinguishedName(.commonName("a")), days: year, at: now, isReplacing: false)
      #expect(try certificate(issued[0]).notAfter == certificate(authority.certificatePath).notAfter)
    }
  }

  @Test(
    "The hint for an existing file says what its replacement does to certificates",
    arguments: [
      (["ca.pem", "ca.key"], "; certificates and profiles of the old authority then stop working"),
      (
        ["client.crt", "client.key"],
        "; the old certificate stays valid unless crl.pem exists, which `sallyport ca revoke` creates"
      ),
      (["client.pem", "client.der", "client.p12", "client.mobileconfig"], ""),
    ])
  func replacementHint(_ files: [String], _ consequence: String) {
    for file in files {
      #expect(ClientAuthorityError.exists("folder/" + file).hint == "--force replaces it" + consequence)
    }
  }

  @Test("Existing files are overwritten only on request, and then all of them")
  func overwriting() async throws {
    try await withAuthority { authority in
      let name = DistinguishedName(.commonName("CA"))
      _ = try authority.make(name, days: 30, at: now, isReplacing: false)
      _ = try authority.issue("client", name, days: 1, at: now, isReplacing: false)
      _ = try authority.export("client", as: .pem, to: nil, isReplacing: false)
      let before = try contents(authority.folder)
      #expect(throws: ClientAuthorityError.exists(authority.certificatePath)) {
        try authority.make(name, days: 30, at: now, isReplacing: false)
      }
      #expect(throws: ClientAuthorityError.exists(authority.certificatePath(of: "client"))) {
        try authority.issue("client", name, days: 1, at: now, isReplacing: false)
      }
      #expect(throws: ClientAuthorityError.exists(authority.folder + "/client.pem")) {
        try authority.export("client", as: .pem, to: nil, isReplacing: false)
      }
      // One existing file of the two is enough for the refusal, and no file is added.
      try FileManager.default.removeItem(atPath: authority.certificatePath)
      #expect(throws: ClientAuthorityError.exists(authority.keyPath)) {
        try authority.make(name, days: 30, at: now, isReplacing: false)
      }
      #expect(try contents(authority.folder) == before.filter { $0.key != "ca.pem" })

      _ = try authority.make(name, days: 30, at: now, isReplacing: true)
      #expect(try Set(contents(authority.folder).keys) == Set(before.keys))
      #expect(try contents(authority.folder)["ca.key"] != before["ca.key"])
    }
  }

  @Test(
    "A name that leads to another folder or is the authority's own is refused",
    arguments: ["", "ca", "crl", "../x", "a/b", ".", "a b", "é", "a\u{0}b"])
  func names(_ name: String) async throws {
    try await withAuthority { authority in
      _ = try authority.make(DistinguishedName(.commonName("CA")), days: 1, at: now, isReplacing: false)
      #expect(throws: ClientAuthorityError.unusableName(name)) {
        try authority.issue(name, DistinguishedName(.commonName("x")), days: 1, at: now, isReplacing: true)
      }
      #expect(throws: ClientAuthorityError.unusableName(name)) {
        try authority.export(name, as: .pem, to: nil, isReplacing: true)
      }
      #expect(ClientAuthorityError.unusableName(name).hint.contains("the names ca and crl are reserved"))
    }
  }

  @Test("A file that is missing or belongs to another authority is reported by name")
  func brokenFolder() async throws {
    try await withAuthority { authority in
      let name = DistinguishedName(.commonName("CA"))
      #expect(throws: ClientAuthorityError.absent(authority.certificatePath)) {
        try authority.issue("client", name, days: 1, at: now, isReplacing: false)
      }
      _ = try authority.make(name, days: 1, at: now, isReplacing: false)
      try ECPrivateKey(.p256).pkcs8PEM.write(toFile: authority.keyPath, atomically: true, encoding: .utf8)
      let fault = #expect(throws: ClientAuthorityError.self) {
        try authority.issue("client", name, days: 1, at: now, isReplacing: false)
      }
      #expect(fault?.description.contains("ca.key: malformed private key: not the key of") == true)
    }
  }
}

@Suite("Export of a client's certificate", .timeLimit(.minutes(2)))
struct ClientExportTests {
  private func withClient<R>(_ body: (ClientAuthority) async throws -> R) async throws -> R {
    try await withAuthority { authority in
      _ = try authority.make(
        DistinguishedName(.commonName("A & B <CA>")), days: 3650, at: now, isReplacing: false)
      _ = try authority.issue(
        "client", DistinguishedName(.commonName("Client")), days: year, at: now, isReplacing: false)
      return try await body(authority)
    }
  }

  @Test(
    "OpenSSL opens the PKCS #12 file with the password only",
    arguments: PKCS12.Encryption.allCases, ["", "päss word"])
  func bundle(_ encryption: PKCS12.Encryption, _ password: String) async throws {
    try await withClient { authority in
      let path = try authority.export(
        "client", as: .p12(password: password, encryption), to: nil, isReplacing: false)
      #expect(path == authority.folder + "/client.p12")
      #expect(try permissions(path) == 0o600)
      let (exit, text, errors) = try await openssl(
        "pkcs12", "-in", path, "-nodes", "-info", "-passin", "pass:\(password)")
      #expect(exit == .code(0), "\(errors)")
      #expect(text.count { $0 == "-----BEGIN CERTIFICATE-----" } == 2)
      #expect(text.contains("-----BEGIN PRIVATE KEY-----") && text.contains("    friendlyName: client"))
      let expected = encryption == .modern ? "AES-256-CBC" : "pbeWithSHA1And3-KeyTripleDES-CBC"
      #expect(errors.contains { $0.contains(expected) }, "\(errors)")
      let wrong = try await openssl("pkcs12", "-in", path, "-nodes", "-passin", "pass:wrong")
      #expect(wrong.exit != .code(0))
    }
  }

  @Test("A PEM file contains the certificate and its key, a DER file only the certificate")
  func plain() async throws {
    try await withClient { authority in
      let pem = try authority.export("client", as: .pem, to: nil, isReplacing: false)
      let both =
        try String(contentsOfFile: authority.certificatePath(of: "client"), encoding: .utf8)
        + String(contentsOfFile: authority.keyPath(of: "client"), encoding: .utf8)
      #expect(try String(contentsOfFile: pem, encoding: .utf8) == both)
      #expect(try permissions(pem) == 0o600)
      let der = try authority.export("client", as: .der, to: authority.folder + "/x.cer", isReplacing: false)
      #expect(
        try [UInt8](Data(contentsOf: URL(filePath: der))) == certificate(authority.certificatePath(of: "client")).der)
      #expect(try permissions(der) == 0o644)
    }
  }

  @Test("A configuration profile is a property list with the authority and the identity, without the password")
  func profile() async throws {
    try await withClient { authority in
      let path = try authority.export(
        "client", as: .mobileconfig(password: "secret word", .modern), to: nil, isReplacing: false)
      #expect(try permissions(path) == 0o600)
      #expect(try !String(contentsOfFile: path, encoding: .utf8).contains("secret"))
      let program = """
        import json, plistlib, sys
        profile = plistlib.load(open(sys.argv[1], "rb"))
        root, identity = profile["PayloadContent"]
        open(sys.argv[2] + "/root.der", "wb").write(root.pop("PayloadContent"))
        open(sys.argv[2] + "/identity.p12", "wb").write(identity.pop("PayloadContent"))
        print(json.dumps(profile))
        """
      let (exit, output, errors) = try await ChildProcess.run(
        Places.tool("python3"), ["-c", program, path, authority.folder])
      #expect(exit == .code(0), "\(errors)")
      let profile = try JSONDecoder().decode(Profile.self, from: Data(output.joined().utf8))
      #expect(profile.PayloadType == "Configuration" && profile.PayloadVersion == 1)
      #expect(
        profile.PayloadContent.map(\.PayloadType) == ["com.apple.security.root", "com.apple.security.pkcs12"])
      #expect(profile.PayloadContent[0].PayloadDisplayName == "CN=A & B \\<CA\\>")
      let uuids = profile.PayloadContent.map(\.PayloadUUID) + [profile.PayloadUUID]
      #expect(Set(uuids).count == 3 && uuids.allSatisfy { UUID(uuidString: $0) != nil })

      let root = try [UInt8](Data(contentsOf: URL(filePath: authority.folder + "/root.der")))
      #expect(try root == certificate(authority.certificatePath).der)
      let bundle = try await openssl(
        "pkcs12", "-in", authority.folder + "/identity.p12", "-nodes", "-passin", "pass:secret word")
      #expect(bundle.exit == .code(0), "\(bundle.errors)")
    }
  }

  private struct Profile: Decodable {
    struct Payload: Decodable {
      let PayloadType: String
      let PayloadUUID: String
      let PayloadDisplayName: String
    }
    let PayloadType: String
    let PayloadVersion: Int
    let PayloadUUID: String
    let PayloadContent: [Payload]
  }
}

private func certificate(_ path: String) throws -> Certificate {
  try #require(try Certificate.certificates(pem: String(contentsOfFile: path, encoding: .utf8)).first)
}

private func contents(_ folder: String) throws -> [String: Data] {
  let names = try FileManager.default.contentsOfDirectory(atPath: folder)
  return try Dictionary(
    uniqueKeysWithValues: names.map { ($0, try Data(contentsOf: URL(filePath: folder + "/" + $0))) })
}

private func openssl(
  _ arguments: String...
) async throws -> (exit: ChildProcess.Exit, output: [String], errors: [String]) {
  try await openssl(arguments)
}

private func openssl(
  _ arguments: [String]
) async throws -> (exit: ChildProcess.Exit, output: [String], errors: [String]) {
  try await ChildProcess.run(Places.tool("openssl"), arguments)
}
