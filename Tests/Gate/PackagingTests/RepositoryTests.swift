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
      try await workshop.succeed(
        "gpg", "--batch", "--passphrase", "", "--quick-generate-key", address, "ed25519", "sign", "never")
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

  /// Makes a package, and returns its path.
  func package(_ version: String) async throws -> String {
    let tree = folder + "/" + UUID().uuidString
    try FileManager.default.createDirectory(atPath: tree + "/DEBIAN", withIntermediateDirectories: true)
    let architecture = try await succeed("dpkg", "--print-architecture")[0]
    let fields = """
      Package: sallyport
      Version: \(version)
      Architecture: \(architecture)
      Maintainer: Packages <\(Self.address)>
      Section: net
      Priority: optional
      Description: gate

      """
    try Data(fields.utf8).write(to: URL(fileURLWithPath: tree + "/DEBIAN/control"))
    let file = folder + "/sallyport_\(version).deb"
    try await succeed("dpkg-deb", "--root-owner-group", "--build", tree, file)
    return file
  }

  func add(_ packages: String..., key: String = Workshop.address) async throws -> (
    exit: ChildProcess.Exit, output: [String], errors: [String]
  ) {
    try await ChildProcess.run(
      "/bin/bash", [ProjectFile.path("scripts/repository"), repository, "--key", key] + packages,
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
      #expect(output.contains { $0.contains("signed-by=/usr/share/keyrings/sallyport.asc] https://packages.") })
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

  @Test func `what cannot be added changes nothing, and is told with a hint`() async throws {
    try await Workshop.with { workshop in
      let good = try await workshop.package("1.0.0~deb12")
      let other = try await workshop.package("1.0.0~deb99")
      for (result, code) in [
        (try await workshop.add(good, other), 65), (try await workshop.add(good, "/etc/hostname"), 65),
        (try await workshop.add(good, workshop.folder + "/none.deb"), 66),
        (try await workshop.add(good, key: "nobody@example.com"), 66), (try await workshop.add(), 64),
      ] as [((exit: ChildProcess.Exit, output: [String], errors: [String]), Int32)] {
        #expect(result.exit == .code(code), "\(result)")
        #expect(result.errors.first?.hasPrefix("error: ") == true && result.errors.last?.hasPrefix("hint: ") == true)
      }
      #expect(!FileManager.default.fileExists(atPath: workshop.repository))
    }
  }
}
