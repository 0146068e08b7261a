import MFADomain
import MFAStore
import Testing

@Suite("The vault")
struct VaultTests {
  private static func keys(_ names: String...) throws -> KeyEncryptionKeys {
    try KeyEncryptionKeys(names.map { name in (name, Array(repeating: UInt8(name.utf8.first ?? 0), count: 32)) })
  }

  @Test("X-054 a sealed value opens for its own place, and for no other")
  func places() async throws {
    let vault = try await Vault.open(in: SQLiteMFAStore.ephemeral(), with: Self.keys("a"), entropy: .system)
    let sealed = try vault.seal("+1234567890", for: "device:1:phone")
    #expect(try vault.openText(sealed, for: "device:1:phone") == "+1234567890")
    #expect(throws: (any Error).self) { try vault.openText(sealed, for: "device:2:phone") }
  }

  @Test("X-054 a sealed value with any changed byte does not open")
  func tampering() async throws {
    let vault = try await Vault.open(in: SQLiteMFAStore.ephemeral(), with: Self.keys("a"), entropy: .system)
    let sealed = try vault.seal("secret", for: "here")
    for index in sealed.bytes.indices {
      var bytes = sealed.bytes
      bytes[index] ^= 1
      #expect(throws: (any Error).self) { try vault.open(Sealed(bytes: bytes), for: "here") }
    }
  }

  @Test("X-054 after a rotation, the new key alone opens the values that were sealed before")
  func rotation() async throws {
    let store = try SQLiteMFAStore.ephemeral()
    let before = try await Vault.open(in: store, with: Self.keys("old"), entropy: .system)
    let sealed = try before.seal("secret", for: "here")
    #expect(try await Vault.rewrap(in: store, with: Self.keys("new", "old"), entropy: .system) == 5)
    let after = try await Vault.open(in: store, with: Self.keys("new"), entropy: .system)
    #expect(try after.openText(sealed, for: "here") == "secret")
    await #expect(throws: Vault.Unopenable.self) {
      try await Vault.open(in: store, with: Self.keys("old"), entropy: .system)
    }
  }

  @Test("X-054 a rotation with another key of the same name fails, and leaves every data key unchanged")
  func rotationWithAnotherKey() async throws {
    let store = try SQLiteMFAStore.ephemeral()
    let before = try await Vault.open(in: store, with: Self.keys("a"), entropy: .system)
    let sealed = try before.seal("secret", for: "here")
    let differentKey = try KeyEncryptionKeys([("a", Array(repeating: 0, count: 32))])
    await #expect(throws: Vault.Unopenable.self) {
      try await Vault.rewrap(in: store, with: differentKey, entropy: .system)
    }
    let both = try KeyEncryptionKeys([
      ("b", Array(repeating: 1, count: 32)), ("a", Array(repeating: 0, count: 32)),
    ])
    await #expect(throws: Vault.Unopenable.self) { try await Vault.rewrap(in: store, with: both, entropy: .system) }
    let after = try await Vault.open(in: store, with: Self.keys("a"), entropy: .system)
    #expect(try after.openText(sealed, for: "here") == "secret")
  }

  @Test("X-054 two servers that start at the same time use the same keys")
  func firstStart() async throws {
    let store = try SQLiteMFAStore.ephemeral()
    async let first = Vault.open(in: store, with: Self.keys("a"), entropy: .system)
    async let second = Vault.open(in: store, with: Self.keys("a"), entropy: .system)
    #expect(try await first.hash("x", as: "test") == second.hash("x", as: "test"))
  }
}
