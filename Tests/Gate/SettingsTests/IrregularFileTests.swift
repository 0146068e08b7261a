@testable import ConfigurationEngine
import Foundation
import TestSupport
import Testing

@testable import Settings

@Suite("Files that are not regular", .timeLimit(.minutes(1)))
struct IrregularFileTests {
  @Test(
    "A pipe in place of a configured file is refused immediately", arguments: ["cert.pem", "key.pem", "good.token"])
  func namedPipe(_ name: String) throws {
    let workspace = try Workspace()
    let path = "\(workspace.folder)/\(name)"
    try FileManager.default.removeItem(atPath: path)
    try #require(mkfifo(path, 0o600) == 0)
    do {
      _ = try workspace.load(yaml: "admin: { listen: '127.0.0.1:1', token_file: good.token }")
      Issue.record("accepted")
    } catch let error as ConfigurationErrors {
      #expect(error.description.contains("cannot read \(path): not a regular file"), "\(error)")
    }
  }

  @Test("A list of revoked client certificates may have more than 8 MiB: the gate reads up to 64")
  func largeList() throws {
    let workspace = try Workspace()
    let lines = String(repeating: String(repeating: "A", count: 64) + "\n", count: 140_000)
    try workspace.write("-----BEGIN X509 CRL-----\n\(lines)-----END X509 CRL-----\n", to: "crl.pem")
    #expect(try workspace.faults(yaml: "debug_mtls: { client_ca_file: cert.pem, crl_file: crl.pem }") == [])
  }

  @Test("A pipe and a device in place of .env are refused, and a folder is a warning")
  func dotEnv() throws {
    let workspace = try Workspace()
    let path = "\(workspace.folder)/.env"
    let examine = { [folder = workspace.folder] in
      SettingsLoader(file: nil, environment: Workspace.tls, workingDirectory: folder).examine().faults.map(
        \.description)
    }
    try #require(mkfifo(path, 0o600) == 0)
    #expect(examine().contains { $0.contains("not a regular file") })
    try FileManager.default.removeItem(atPath: path)
    try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: "/dev/zero")
    #expect(examine().contains { $0.contains("not a regular file") })
    try FileManager.default.removeItem(atPath: path)
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    #expect(!examine().contains { $0.contains("EISDIR") })
    let warnings = SettingsLoader(file: nil, environment: Workspace.tls, workingDirectory: workspace.folder).examine()
      .warnings
    #expect(warnings.contains { $0.description.contains("not used: \(path): Is a directory (EISDIR)") }, "\(warnings)")
  }

  @Test("A .env that every user can write is refused, and so is one of another user, except root and the user of sudo")
  func otherOwners() throws {
    let workspace = try Workspace()
    let path = "\(workspace.folder)/.env"
    try "SALLYPORT_LISTEN__PORT=7000\n".write(toFile: path, atomically: true, encoding: .utf8)
    let examine = { [folder = workspace.folder] in
      SettingsLoader(file: nil, environment: Workspace.tls, workingDirectory: folder).examine().faults.map(
        \.description)
    }
    try #require(chmod(path, 0o664) == 0)
    #expect(!examine().contains { $0.contains(".env") })
    try #require(chmod(path, 0o666) == 0)
    let faults = examine()
    #expect(
      faults.contains { $0.contains("every user of this machine can write \(workspace.folder)/.env") }, "\(faults)")

    // A file of other programs alone is left alone.
    try "# ours\nTZ=UTC\n".write(toFile: path, atomically: true, encoding: .utf8)
    try #require(chmod(path, 0o666) == 0)
    #expect(!examine().contains { $0.contains(".env") })
    let warnings = SettingsLoader(file: nil, environment: Workspace.tls, workingDirectory: workspace.folder).examine()
      .warnings
    #expect(
      warnings.contains { $0.description.contains("not used: every user of this machine can write") }, "\(warnings)")

    let fault = { (owner: UInt32, user: UInt32, sudoer: String?) in
      DotEnv.fault(at: path, ofOwner: owner, 0o644, by: user, sudoer.map { ["SUDO_UID": $0] } ?? [:])?.reason
    }
    let own: [(UInt32, UInt32, String?)] = [(1000, 1000, nil), (0, 1000, nil), (0, 0, nil), (1000, 0, "1000")]
    for (owner, user, sudoer) in own { #expect(fault(owner, user, sudoer) == nil) }
    let foreign: [(UInt32, UInt32, String?)] = [
      (1001, 1000, nil), (1000, 0, nil), (1001, 0, "1000"), (1001, 1000, "1001"), (1001, 0, "x"),
    ]
    for (owner, user, sudoer) in foreign {
      #expect(fault(owner, user, sudoer)?.contains("belongs to another user (\(owner))") == true)
    }
    // Who owns a link chooses the file.
    let linked = DotEnv.fault(at: path, ofOwner: 0, throughLinkOf: 1001, 0o444, by: 1000, [:])
    #expect(linked?.reason.contains("belongs to another user (1001)") == true)
    #expect(DotEnv.fault(at: path, ofOwner: 0, throughLinkOf: 0, 0o444, by: 1000, [:]) == nil)
  }

  @Test("A pipe on the command line is read to its end")
  func acceptedPipe() async throws {
    try await Places.withTemporaryFolder { folder in
      let path = folder + "/pipe"
      try #require(mkfifo(path, 0o600) == 0)
      let text = String(repeating: "a line of a configuration\n", count: 10_000)
      let writer = Thread { try? text.write(toFile: path, atomically: false, encoding: .utf8) }
      writer.start()
      #expect(try FileContent.read(path, acceptsPipe: true) == Array(text.utf8))
      #expect(throws: FileContentError.irregular) { try FileContent.read(path) }
    }
  }

  @Test("A pipe whose writer has closed it is read to its end")
  func closedPipe() throws {
    let pipe = Pipe()
    pipe.fileHandleForWriting.write(Data("listen: {}\n".utf8))
    try pipe.fileHandleForWriting.close()
    let path = "/proc/self/fd/\(pipe.fileHandleForReading.fileDescriptor)"
    #expect(try FileContent.read(path, acceptsPipe: true) == Array("listen: {}\n".utf8))
  }
}
