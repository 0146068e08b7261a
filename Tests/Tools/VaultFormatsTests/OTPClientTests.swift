import AuthenticatorVault
import Foundation
import OneTimePasswords
import TestSupport
import Testing
import VaultFormats

/// OTPClient, a desktop program, without a screen.
@Suite("OTPClient", .serialized, .timeLimit(.minutes(3)))
struct OTPClientTests {
  /// OTPClient 3.1 counts characters where it needs bytes, so that neither its database nor its passwords can have others
  /// than those of ASCII.
  private static let entries = [
    VaultEntry(issuer: "GitHub", account: "alice", secret: Array("12345678901234567890".utf8), at: 5),
    VaultEntry(
      issuer: "Example AG", account: "joe+x@example.com", secret: Array("another secret".utf8),
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
    "OTPClient opens what we write, and what it writes is read",
    .enabled("scripts/test --otpclient runs it") {
      ProcessInfo.processInfo.environment["SALLYPORT_TEST_OTPCLIENT"] != nil
    },
    arguments: [(VaultFormat.aegis, "Aegis (encrypted json)"), (.otpauth, "FreeOTP+ (key URI)")])
  func otpClient(_ format: VaultFormat, _ kind: String) async throws {
    let password = "pass words"
    let written = try VaultWriter.write(
      Self.entries, as: format, password: format == .aegis ? password : nil, at: 9)
    #expect(written.faults.isEmpty)
    let exports = [
      ("Aegis (encrypted json)", VaultFormat.aegis), ("Aegis (plain json)", .aegis), ("andOTP (encrypted)", .andOTP),
      ("andOTP (plain)", .andOTP), ("FreeOTP+ (key URI)", .otpauth),
    ]
    try await Places.withTemporaryFolder { folder in
      try Data(written.bytes).write(to: URL(fileURLWithPath: folder + "/ours"))
      // Where a keyring runs, it would ask for a password of its own.
      try FileManager.default.createDirectory(atPath: folder + "/.config", withIntermediateDirectories: true)
      try Data("[config]\ndb_path=\(folder)/database.enc\ndisable_secret_service=true\n".utf8)
        .write(to: URL(fileURLWithPath: folder + "/.config/otpclient.cfg"))
      let run = try await ChildProcess.run(
        Places.tool("xvfb-run"),
        [
          "--auto-servernum", "--server-args=-screen 0 1000x700x24", Places.tool("dbus-run-session"), "--",
          "/usr/bin/python3", ProjectFile.path("Tests/Tools/Programs/otpclient.py"), folder + "/ours", kind,
          password,
        ] + exports.map(\.0),
        environment: [
          "HOME": folder, "LC_ALL": "C.UTF-8", "XDG_CONFIG_HOME": nil, "XDG_CACHE_HOME": nil, "XDG_DATA_HOME": nil,
          "DISPLAY": nil, "WAYLAND_DISPLAY": nil,
        ], in: folder, within: .seconds(150))
      #expect(run.exit == .code(0), "\(run.errors.suffix(5))")
      let paths = run.output.filter { $0.hasPrefix("/") }
      try #require(paths.count == exports.count)
      for (path, (name, expected)) in zip(paths, exports) {
        let bytes = Array(try Data(contentsOf: URL(fileURLWithPath: path)))
        let file = try VaultReader.read(bytes, at: 5) { password }
        #expect(file.format == expected && file.faults.isEmpty, "\(name): \(file.faults)")
        #expect(Set(file.entries) == Set(Self.entries), "\(name)")
        if name.contains("encrypted") {
          #expect(throws: VaultFormatError.wrongPassword) { try VaultReader.read(bytes, at: 5) { "password" } }
        }
      }
    }
  }
}
