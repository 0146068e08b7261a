import AuthenticatorVault
import Foundation
import OneTimePasswords
import TestSupport
import Testing
import VaultFormats

/// OTPClient, a desktop program, without a screen.
@Suite("OTPClient and encrypted files of Aegis", .timeLimit(.minutes(3)))
struct OTPClientTests {
  /// OTPClient 3.1 counts characters where it needs bytes, so that neither its database nor its passwords can have others
  /// than those of ASCII.
  private static let entries = [
    VaultEntry(issuer: "GitHub", account: "alice", secret: Array("12345678901234567890".utf8), at: 5),
    VaultEntry(
      issuer: "Example AG: shop", account: "joe+x@example.com", secret: Array("another secret".utf8),
      algorithm: .sha256,
      digits: 8, at: 5),
    VaultEntry(
      issuer: "Slow", account: "s", secret: Array("a third one".utf8), kind: .totp(period: 60), algorithm: .sha512,
      at: 5
    ),
    VaultEntry(
      issuer: "Bank", account: "bob", secret: Array("the fourth".utf8), kind: .hotp, algorithm: .sha512, digits: 7,
      counter: 77, at: 5),
    VaultEntry(issuer: "Steam", account: "me", secret: Array("the fifth".utf8), kind: .steam, digits: 5, at: 5),
  ]

  @Test(
    "OTPClient opens what is written for Aegis, and what it writes is read",
    .enabled("scripts/test --otpclient runs it") {
      ProcessInfo.processInfo.environment["SALLYPORT_TEST_OTPCLIENT"] != nil
    })
  func otpClient() async throws {
    let password = "pass words"
    let written = try VaultWriter.write(Self.entries, as: .aegis, password: password, at: 9)
    #expect(written.faults.isEmpty)
    let exported = try await Places.withTemporaryFolder { folder in
      try Data(written.bytes).write(to: URL(fileURLWithPath: folder + "/ours.json"))
      // Where a keyring runs, it would ask for a password of its own.
      try FileManager.default.createDirectory(atPath: folder + "/.config", withIntermediateDirectories: true)
      try Data("[config]\ndb_path=\(folder)/database.enc\ndisable_secret_service=true\n".utf8)
        .write(to: URL(fileURLWithPath: folder + "/.config/otpclient.cfg"))
      let run = try await ChildProcess.run(
        Places.tool("xvfb-run"),
        [
          "--auto-servernum", "--server-args=-screen 0 1000x700x24", Places.tool("dbus-run-session"), "--",
          "/usr/bin/python3", ProjectFile.path("Tests/Authenticator/Programs/otpclient.py"), folder + "/ours.json",
          password,
        ],
        environment: [
          "HOME": folder, "LC_ALL": "C.UTF-8", "XDG_CONFIG_HOME": nil, "XDG_CACHE_HOME": nil, "XDG_DATA_HOME": nil,
          "DISPLAY": nil, "WAYLAND_DISPLAY": nil,
        ], in: folder, within: .seconds(120))
      #expect(run.exit == .code(0), "\(run.errors.suffix(5))")
      return Array(try Data(contentsOf: URL(fileURLWithPath: try #require(run.output.last))))
    }
    let file = try VaultReader.read(exported, at: 5) { password }
    #expect(file.format == .aegis && file.faults.isEmpty, "\(file.faults)")
    #expect(Set(file.entries) == Set(Self.entries))
    #expect(throws: VaultFormatError.wrongPassword) { try VaultReader.read(exported, at: 5) { "password" } }
  }
}
