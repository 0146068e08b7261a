import Foundation
import TestSupport
import Testing

@Suite(
  "Secrets in GNOME Keyring", .timeLimit(.minutes(2)),
  .enabled("gnome-keyring is not installed; scripts/setup --tests installs it") {
    FileManager.default.isExecutableFile(atPath: "/usr/bin/gnome-keyring-daemon")
  })
struct KeyringTests {
  private func withKeyring(
    _ service: PrivateBus.Service = .unlocked, _ body: (PrivateBus) async throws -> Void
  ) async throws {
    try await Places.withTemporaryFolder { folder in
      let bus = try await PrivateBus(in: folder, service)
      do {
        try await body(bus)
      } catch {
        bus.end()
        throw error
      }
      bus.end()
      try await bus.serviceEnd()
    }
  }

  private func base64(_ text: String) -> String { Data(text.utf8).base64EncodedString() }

  @Test func `a secret is found until it is removed`() async throws {
    try await withKeyring { bus async throws in
      #expect(try await bus.probe("check") == "available")
      #expect(try await bus.probe("lookup", "app=x") == "none")
      #expect(try await bus.probe("store", "app=x", input: Array("one".utf8)) == "stored")
      #expect(try await bus.probe("lookup", "app=x") == base64("one"))
      #expect(try await bus.probe("remove", "app=x") == "removed")
      #expect(try await bus.probe("lookup", "app=x") == "none")
      #expect(try await bus.probe("remove", "app=x") == "none")
    }
  }

  @Test func `the same attributes replace the secret, and other attributes do not`() async throws {
    try await withKeyring { bus async throws in
      for (account, secret) in [("a", "one"), ("b", "two"), ("a", "three")] {
        #expect(try await bus.probe("store", "app=x", "account=\(account)", input: Array(secret.utf8)) == "stored")
      }
      #expect(try await bus.probe("lookup", "app=x", "account=a") == base64("three"))
      #expect(try await bus.probe("lookup", "app=x", "account=b") == base64("two"))
      #expect(try await bus.probe("lookup", "app=x", "account=c") == "none")
      #expect(try await bus.probe("lookup", "app=y", "account=a") == "none")
      // Fewer attributes match both.
      #expect(try await bus.probe("remove", "app=x") == "removed")
      #expect(try await bus.probe("lookup", "app=x", "account=b") == "none")
    }
  }

  @Test(arguments: [[UInt8](), Array(0...255), [0, 0], Array("ä€".utf8), [UInt8](repeating: 10, count: 65536)])
  func `a secret keeps each byte`(secret: [UInt8]) async throws {
    try await withKeyring { bus async throws in
      #expect(try await bus.probe("store", "app=x", input: secret) == "stored")
      #expect(try await bus.probe("lookup", "app=x") == Data(secret).base64EncodedString())
    }
  }

  @Test func `secret-tool reads what is stored here, and the reverse`() async throws {
    try await withKeyring { bus async throws in
      #expect(try await bus.probe("store", "app=x", "user=ä", input: Array("ours".utf8)) == "stored")
      #expect(try await bus.run("secret-tool", ["lookup", "app", "x", "user", "ä"]).output == "ours")
      let stored = try await bus.run(
        "secret-tool", ["store", "--label=theirs", "app", "y"], input: Array("theirs".utf8))
      #expect(stored.code == 0)
      #expect(try await bus.probe("lookup", "app=y") == base64("theirs"))
      #expect(try await bus.probe("remove", "app=x") == "removed")
      #expect(try await bus.run("secret-tool", ["lookup", "app", "x"]).code == 1)
    }
  }

  @Test func `a locked keyring is reported, without a prompt, and keeps its secrets`() async throws {
    try await withKeyring { bus async throws in
      #expect(try await bus.probe("store", "app=x", input: Array("one".utf8)) == "stored")
      let lock = try await bus.run(
        "dbus-send",
        [
          "--session", "--print-reply", "--dest=org.freedesktop.secrets", "/org/freedesktop/secrets",
          "org.freedesktop.Secret.Service.Lock", "array:objpath:/org/freedesktop/secrets/collection/login",
        ])
      #expect(lock.code == 0)
      #expect(try await bus.probe("check") == "available")
      #expect(try await bus.probe("lookup", "app=x") == "locked")
      #expect(try await bus.probe("store", "app=x", input: Array("two".utf8)) == "locked")
      #expect(try await bus.probe("remove", "app=x") == "locked")
      #expect(try await bus.probe("lookup", "app=y") == "none")
      #expect(!bus.hasPrompted)
      // The twin: secret-tool asks the user.
      #expect(try await bus.run("secret-tool", ["lookup", "app", "x"]).code != 0)
      #expect(bus.hasPrompted)
    }
  }

  @Test func `without any keyring there is nothing to find, and no place to store`() async throws {
    try await withKeyring(.empty) { bus async throws in
      #expect(try await bus.probe("lookup", "app=x") == "none")
      #expect(try await bus.probe("store", "app=x", input: [1]) == "unavailable")
      #expect(!bus.hasPrompted)
    }
  }

  @Test func `attributes are needed, and have names`() async throws {
    try await withKeyring { bus async throws in
      #expect(try await bus.probe("store", "app=x", input: [1]) == "stored")
      #expect(try await bus.probe("lookup") == "invalid")
      #expect(try await bus.probe("remove") == "invalid")
      #expect(try await bus.probe("store", "=x", input: [1]) == "invalid")
      #expect(try await bus.probe("lookup", "app=x") == "AQ==")
    }
  }
}
