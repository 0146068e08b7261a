import AppAttest
import AttestClient
import ByteCoding
import Cryptography
import SimulatedDevice
import Locking
import Testing

@Suite("Keys of a simulated device")
struct KeyServiceTests {
  static let now = Timestamp(seconds: 1_780_000_000)
  static let appID = "AAABBBCCC1.com.example.app"
  static let authority = Result { try TestAuthority(appID: appID, at: now) }
  static let hash = SHA256.hash([1])

  private func device(keys: any SimulatedKeyStore = MemoryKeyStore()) throws -> SimulatedKeyService {
    let app = SimulatedApp(appID: Self.appID, claims: AppClaims())
    return SimulatedKeyService(authority: try Self.authority.get(), app: app, keys: keys, now: { Self.now })
  }

  @Test("A key is attested under the authority, and the counters of its assertions increase")
  func lifecycle() async throws {
    let device = try device()
    let authority = try Self.authority.get()
    let appID = try #require(AppID(Self.appID))
    let keyID = try await device.generateKey()
    let attestation = try await device.attestKey(keyID, clientDataHash: Self.hash)

    let verified = try AttestationVerifier(
      apps: [appID: [.development]], attestationRoots: [authority.attestationRoot.certificate],
      receiptRoots: [authority.receiptRoot.certificate]
    ).verify(
      AttestationObject(attestation), keyID: try #require(KeyID(base64: keyID)),
      clientDataHash: ClientDataHash(bytes: Self.hash), at: Self.now)

    var last = SignCount.zero
    for expected in 1...3 as ClosedRange<UInt32> {
      let assertion = try await device.generateAssertion(keyID, clientDataHash: Self.hash)
      last = try AssertionVerifier().verify(
        Assertion(assertion), by: verified.key, clientDataHash: ClientDataHash(bytes: Self.hash), after: last)
      #expect(last == SignCount(expected))
    }
  }

  @Test("A key is attested once")
  func once() async throws {
    let device = try device()
    let keyID = try await device.generateKey()
    _ = try await device.attestKey(keyID, clientDataHash: Self.hash)
    await #expect(throws: KeyServiceError.invalidKey) { try await device.attestKey(keyID, clientDataHash: Self.hash) }
  }

  @Test("A key that is not attested or belongs to another device signs nothing")
  func unattested() async throws {
    let device = try device()
    let keyID = try await device.generateKey()
    let otherKeyID = try await self.device().generateKey()
    for unusable in [keyID, otherKeyID, "", "../../etc/passwd"] {
      await #expect(throws: KeyServiceError.invalidKey) {
        try await device.generateAssertion(unusable, clientDataHash: Self.hash)
      }
    }
    await #expect(throws: KeyServiceError.invalidKey) {
      try await device.attestKey(otherKeyID, clientDataHash: Self.hash)
    }
  }

  @Test("An assertion whose counter cannot be saved is not returned, and no counter is repeated")
  func counterFirst() async throws {
    let keys = FailingKeyStore()
    let device = try device(keys: keys)
    let keyID = try await device.generateKey()
    _ = try await device.attestKey(keyID, clientDataHash: Self.hash)
    keys.fails.withLock { $0 = true }
    await #expect(throws: KeyServiceError.self) { try await device.generateAssertion(keyID, clientDataHash: Self.hash) }
    keys.fails.withLock { $0 = false }
    let assertion = try await device.generateAssertion(keyID, clientDataHash: Self.hash)
    #expect(try Assertion(assertion).counter == SignCount(1))
    #expect(keys.key(keyID)?.signCount == 1)
  }

  @Test("256 concurrent assertions have 256 different counters")
  func concurrent() async throws {
    let device = try device()
    let keyID = try await device.generateKey()
    _ = try await device.attestKey(keyID, clientDataHash: Self.hash)
    let counters = try await withThrowingTaskGroup(of: UInt32.self) { group in
      for _ in 0..<256 {
        group.addTask { try await Assertion(device.generateAssertion(keyID, clientDataHash: Self.hash)).counter.value }
      }
      return try await group.reduce(into: Set()) { $0.insert($1) }
    }
    #expect(counters == Set(1...256))
  }
}

/// A key store in memory. A test can make saving fail.
private final class FailingKeyStore: SimulatedKeyStore {
  let fails = LockedValue(false)
  private let keys = MemoryKeyStore()

  func key(_ keyID: String) -> SimulatedKey? { keys.key(keyID) }

  func save(_ key: SimulatedKey) throws(KeyStoreError) {
    if fails.withLock({ $0 }) { throw .unwritable("disk full") }
    keys.save(key)
  }
}
