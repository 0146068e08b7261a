import bearer
import ConfigurationEngine
import Foundation
import Glibc
import OIDCClient
import TestSupport
import Testing

@Suite("bearer.yaml on disk")
struct SettingsOnDiskTests {
  private static let yaml =
    "providers:\n  work: { issuer: 'https://a.example', client_id: c, client_secret_file: ./s }\n"

  /// The faults of the file, without the folder.
  private func faults(_ folder: String) -> [String] {
    do throws(ConfigurationErrors) {
      _ = try BearerSettings(file: folder + "/bearer.yaml")
      return []
    } catch {
      return error.faults.map { "\($0)".replacing(folder + "/", with: "") }
    }
  }

  private func write(_ text: String, _ path: String, mode: mode_t = 0o600) throws {
    try Data(text.utf8).write(to: URL(filePath: path))
    #expect(chmod(path, mode) == 0)
  }

  @Test(arguments: [(0o600, true), (0o400, true), (0o640, false), (0o604, false), (0o620, false), (0o602, false)])
  func `a secret is read next to the file, if its mode is private`(mode: Int, isAllowed: Bool) async throws {
    try await Places.withTemporaryFolder { folder in
      try write(Self.yaml, folder + "/bearer.yaml", mode: 0o644)
      try write("s3cret\n", folder + "/s", mode: mode_t(mode))
      let faults = faults(folder)
      #expect(faults.isEmpty == isAllowed)
      #expect(!faults.joined().contains("s3cret"))
    }
  }

  @Test func `a file that cannot be read is named`() async throws {
    try await Places.withTemporaryFolder { folder in
      let path = folder + "/bearer.yaml"
      #expect(
        faults(folder) == ["bearer.yaml:1:1: cannot read the file: No such file or directory (ENOENT)"])
      try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
      #expect(faults(folder) == ["bearer.yaml:1:1: cannot read the file: Is a directory (EISDIR)"])
      try FileManager.default.removeItem(atPath: path)
      try Data([0x61, 0xFF]).write(to: URL(filePath: path))
      #expect(faults(folder) == ["bearer.yaml:1:2: not UTF-8"])
      try Data(count: (1 << 20) + 1).write(to: URL(filePath: path))
      #expect(faults(folder) == ["bearer.yaml:1:1: cannot read the file: larger than 1MiB"])
    }
  }

  @Test func `a pipe is read, as the shell makes one`() async throws {
    try await Places.withTemporaryFolder { folder in
      let path = folder + "/bearer.yaml"
      #expect(mkfifo(path, 0o600) == 0)
      let writer = Task.detached { try Data(Self.yaml.utf8).write(to: URL(filePath: path), options: []) }
      #expect(
        faults(folder) == [
          "bearer.yaml:2:74: providers.work.client_secret_file: cannot read s: No such file or directory (ENOENT)"
        ])
      try await writer.value
    }
  }

  @Test func `the configuration manager loads, selects and validates`() async throws {
    try await Places.withTemporaryFolder { folder in
      try write(Self.yaml, folder + "/bearer.yaml")
      try write("s3cret", folder + "/s")
      let manager = ConfigurationManager { try BearerSettings(file: folder + "/bearer.yaml").providers }
      let provider = try #require(try manager.loadConfiguration().first)
      #expect(try manager.selectProvider("work") == provider)
      try manager.validateProvider(provider)
      #expect(throws: AuthenticationError.self) { try manager.selectProvider("wrok") }
      let bad = IdentityProvider(id: "x", name: "", issuer: try #require(URL(string: "http://a.example")), clientID: "")
      #expect(throws: AuthenticationError.self) { try manager.validateProvider(bad) }
      // A change of the file takes effect at the next call.
      try write(Self.yaml.replacing("work", with: "other"), folder + "/bearer.yaml")
      #expect(try manager.loadConfiguration().map(\.id) == ["other"])
    }
  }
}
