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
