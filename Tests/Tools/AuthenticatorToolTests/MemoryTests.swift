import AuthenticatorVault
import Foundation
import OneTimePasswords
import TestSupport
import Testing

@Suite("The memory of authenticator", .timeLimit(.minutes(2)))
struct MemoryTests {
  @Test(
    "A command needs at most 64 MiB beyond the key derivation, with 1,000 entries",
    arguments: [
      "list --json", "code service-999", "edit service-5 --note x", "import links.txt", "sync shared", "check",
    ])
  func memory(_ command: String) async throws {
    try await Places.withTemporaryFolder { folder in
      let shell = try Shell(folder)
      let entries = (0..<1000).map { number in
        VaultEntry(issuer: "Service-\(number)", account: "me", secret: Array("the secret \(number)".utf8), at: 1)
      }
      // Its key derivation needs 1 MiB.
      try shell.makeVault(entries)
      let links = entries.map { ($0.uri?.text ?? "").replacing("Service", with: "Other") + "\n" }
      try Data(links.joined().utf8).write(to: URL(fileURLWithPath: folder + "/links.txt"))
      try FileManager.default.createDirectory(atPath: folder + "/shared", withIntermediateDirectories: true)
      let most = try #require(
        try await ChildProcess.peakMemory(
          try Places.product("authenticator"), command.split(separator: " ").map(String.init),
          environment: shell.environment, in: folder))
      print("authenticator \(command): \(most) KiB")
      #expect(most <= 65 << 10)
    }
  }
}
