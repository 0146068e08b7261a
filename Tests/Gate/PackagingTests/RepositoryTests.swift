import Foundation
import TestSupport
import Testing

/// Packages without content, a key that signs, and the repository that scripts/repository makes of them.
private struct Workshop {
  static let address = "packages@example.com"
  let folder: String

  var repository: String { folder + "/repository" }
  private var environment: [String: String?] { ["GNUPGHOME": folder + "/gnupg", "DEBIAN_FRONTEND": "noninteractive"] }

  static func with(_ body: (Workshop) async throws -> Void) async throws {
    try await Places.withTemporaryFolder { folder in
      let workshop = Workshop(folder: folder)
      try FileManager.default.createDirectory(
        atPath: folder + "/gnupg", withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
      _ = try await workshop.key(address)
      do { try await body(workshop) } catch {
        // It would wait until its folder has gone.
        try await workshop.succeed("gpgconf", "--kill", "gpg-agent")
        throw error
      }
      try await workshop.succeed("gpgconf", "--kill", "gpg-agent")
    }
  }

  @discardableResult
  private func succeed(_ program: String, _ arguments: String...) async throws -> [String] {
    let (exit, output, errors) = try await ChildProcess.run(
      Places.tool(program), arguments, environment: environment, in: folder)
    try #require(exit == .code(0), "\(program): \(errors)")
    return output
  }

  /// Makes a key, and returns its address.
  func key(_ address: String, usage: String = "sign", expires: String = "never") async throws -> String {
    // A time at which none of the keys has expired.
    try await succeed(
      "gpg", "--batch", "--faked-system-time", "20000101T000000", "--passphrase", "", "--quick-generate-key", address,
      "ed25519", usage, expires)
    return address
  }

  /// Makes a package, and returns its path. Packages with the same version differ if their `description` does.
  func package(_ version: String, name: String = "sallyport", description: String = "gate") async throws -> String {
    let tree = folder + "/" + UUID().uuidString
    try FileManager.default.createDirectory(atPath: tree + "/DEBIAN", withIntermediateDirectories: true)
    let architecture = try await succeed("dpkg", "--print-architecture")[0]
    let fields = """
      Package: \(name)
      Version: \(version)
      Architecture: \(architecture)
      Maintainer: Packages <\(Self.address)>
      Section: net
      Priority: optional
      Description: \(description)

      """
    try Data(fields.utf8).write(to: URL(fileURLWithPath: tree + "/DEBIAN/control"))
    let file = "\(folder)/\(name)_\(version)_\(description).deb"
    try await succeed("dpkg-deb", "--root-owner-group", "--build", tree, file)
    return file
  }

  func add(_ packages: String..., key: String = Workshop.address, to other: String? = nil) async throws -> (
    exit: ChildProcess.Exit, output: [String], errors: [String]
  ) {
    try await ChildProcess.run(
      "/bin/bash", [ProjectFile.path("scripts/repository"), other ?? repository, "--key", key] + packages,
      environment: environment, in: folder)
  }

  /// The version that apt would install on a machine of `release` that has the repository alone; `nil` if apt does not
  /// trust it.
  func candidate(on release: String) async throws -> String? {
    let root = folder + "/apt-" + UUID().uuidString
    for part in ["/lists/partial", "/cache/archives/partial", "/etc"] {
      try FileManager.default.createDirectory(atPath: root + part, withIntermediateDirectories: true)
    }
    let source = "deb [signed-by=\(repository)/sallyport.asc] file:\(repository) \(release) main\n"
    try Data(source.utf8).write(to: URL(fileURLWithPath: root + "/etc/sources.list"))
    try Data().write(to: URL(fileURLWithPath: root + "/status"))
    let places = [
      "-o", "Dir::Etc=\(root)/etc", "-o", "Dir::State::lists=\(root)/lists", "-o", "Dir::State::status=\(root)/status",
      "-o", "Dir::Cache=\(root)/cache", "-o", "Dir::Etc::trustedparts=\(root)/none", "-o", "APT::Sandbox::User=root",
      "-o", "Acquire::AllowInsecureRepositories=false",
    ]
    let update = try await ChildProcess.run(
      Places.tool("apt-get"), places + ["-o", "APT::Update::Error-Mode=any", "update"], environment: environment)
    guard update.exit == .code(0) else { return nil }
    let policy = try await ChildProcess.run(
      Places.tool("apt-cache"), places + ["policy", "sallyport"], environment: environment)
    return policy.output.first { $0.contains("Candidate:") }?.split(separator: " ").last.map(String.init)
  }
}

@Suite("The apt repository of scripts/repository", .timeLimit(.minutes(2)))
struct RepositoryTests {
  @Test func `apt installs the newest package of its release, and trusts no repository that was changed`() async throws
  {
    try await Workshop.with { workshop in
      let old = try await workshop.package("1.0.0~deb12")
      let (exit, output, errors) = try await workshop.add(old, workshop.package("1.0.0~deb13"))
      try #require(exit == .code(0), "\(errors)")
      #expect(output.contains { $0.contains("URIs: https://packages.example.com\\nSuites: %s\\n") })
      #expect(try await workshop.candidate(on: "bookworm") == "1.0.0~deb12")
      #expect(try await workshop.candidate(on: "trixie") == "1.0.0~deb13")
      #expect(try await workshop.add(workshop.package("1.0.0+git20260101.abc~deb12"), old).exit == .code(0))
      #expect(try await workshop.candidate(on: "bookworm") == "1.0.0+git20260101.abc~deb12")
      #expect(try await workshop.candidate(on: "trixie") == "1.0.0~deb13")
      let release = URL(fileURLWithPath: workshop.repository + "/dists/trixie/InRelease")
      let text = try String(decoding: Data(contentsOf: release), as: UTF8.self)
      try Data(text.replacing("Origin: sallyport", with: "Origin: sallyports").utf8).write(to: release)
      #expect(try await workshop.candidate(on: "trixie") == nil)
    }
  }

  @Test func `a folder adds its packages, a replaced file stays for one call, and an older package is left out`()
    async throws
  {
    try await Workshop.with { workshop in
      _ = try await workshop.package("1.0.0~deb12")
      let files = workshop.repository + "/pool/main/s/sallyport/sallyport_"
      let exists = { FileManager.default.fileExists(atPath: files + $0 + ".deb") }
      let architecture = try await ChildProcess.run(Places.tool("dpkg"), ["--print-architecture"]).output[0]
      let (old, new) = ("1.0.0~deb12_" + architecture, "1.0.1~deb12_" + architecture)
      #expect(try await workshop.add(workshop.folder).exit == .code(0))
      #expect(exists(old))
      #expect(try await workshop.add(workshop.package("1.0.1~deb12")).exit == .code(0))
      #expect(exists(old) && exists(new))
      // Both packages are in the folder now.
      #expect(try await workshop.add(workshop.folder).exit == .code(0))
      #expect(!exists(old) && exists(new))
      #expect(try await workshop.candidate(on: "bookworm") == "1.0.1~deb12")
    }
  }

  /// Requires a status, and an error with a hint.
  private func expect(
    _ code: Int32, _ result: (exit: ChildProcess.Exit, output: [String], errors: [String]),
    location: SourceLocation = #_sourceLocation
  ) {
    #expect(result.exit == .code(code), "\(result)", sourceLocation: location)
    #expect(result.errors.count == 2, "\(result)", sourceLocation: location)
    #expect(result.errors.first?.hasPrefix("error: ") == true, "\(result)", sourceLocation: location)
    #expect(result.errors.last?.hasPrefix("hint: ") == true, "\(result)", sourceLocation: location)
  }

  @Test func `what cannot be added changes nothing, and is told with a hint`() async throws {
    try await Workshop.with { workshop in
      let good = try await workshop.package("1.0.0~deb12")
      expect(64, try await workshop.add())
      expect(64, try await workshop.add(good, "--suite", "14"))
      expect(65, try await workshop.add(good, workshop.package("1.0.0~deb99")))
      expect(65, try await workshop.add(good, workshop.package("1.0.0")))
      expect(65, try await workshop.add(good, workshop.package("1.0.0~deb12", name: "other")))
      expect(65, try await workshop.add(good, workshop.package("1.0.0~deb12", description: "another")))
      expect(65, try await workshop.add(good, "/etc/hostname"))
      expect(66, try await workshop.add(good, workshop.folder + "/none.deb"))
      expect(66, try await workshop.add(good, workshop.folder + "/gnupg"))
      expect(73, try await workshop.add(good, to: "/etc/hostname"))
      // A folder with other files.
      expect(73, try await workshop.add(good, to: workshop.folder + "/gnupg"))
      #expect(!FileManager.default.fileExists(atPath: workshop.repository))
      #expect(!FileManager.default.fileExists(atPath: workshop.folder + "/gnupg/conf"))
      #expect(try await workshop.add(workshop.package("1.0.0"), "--suite", "13").exit == .code(0))
      #expect(try await workshop.candidate(on: "trixie") == "1.0.0")
    }
  }

  @Test func `a key that is missing, expired, not for signatures or another one is refused`() async throws {
    try await Workshop.with { workshop in
      let good = try await workshop.package("1.0.0~deb12")
      expect(66, try await workshop.add(good, key: "nobody@example.com"))
      expect(65, try await workshop.add(good, key: workshop.key("expired@example.com", expires: "2001-01-01")))
      expect(65, try await workshop.add(good, key: workshop.key("certifier@example.com", usage: "cert")))
      expect(64, try await workshop.add(good, key: "example.com"))
      #expect(!FileManager.default.fileExists(atPath: workshop.repository))
      #expect(try await workshop.add(good).exit == .code(0))
      expect(65, try await workshop.add(good, key: workshop.key("second@example.org")))
      #expect(try await workshop.candidate(on: "bookworm") == "1.0.0~deb12")
    }
  }
}
