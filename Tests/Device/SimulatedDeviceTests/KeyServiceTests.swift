import AppAttest
import AttestClient
import ByteCoding
import Cryptography
import SimulatedDevice
import Locking
import Testing

@Suite("A simulated device's keys")
struct KeyServiceTests {
  static let now = Timestamp(seconds: 1_780_000_000)
  static let appID = "AAABBBCCC1.com.example.app"
  static let authority = Result { try TestAuthority(appID: appID, at: now) }
  static let hash = SHA256.hash([1])

  private func device(keys: any SimulatedKeyStore = MemoryKeyStore()) throws -> SimulatedKeyService {
    let app = SimulatedApp(appID: Self.appID, claims: AppClaims())
    return SimulatedKeyService(authority: try Self.authority.get(), app: app, keys: keys, now: { Self.now })
  }

  @Test("are attested under the authority and make assertions that count upwards")
  func life() async throws {
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

  @Test("are attested once")
  func once() async throws {
    let device = try device()
    let keyID = try await device.generateKey()
    _ = try await device.attestKey(keyID, clientDataHash: Self.hash)
    await #expect(throws: KeyServiceError.invalidKey) { try await device.attestKey(keyID, clientDataHash: Self.hash) }
  }

  @Test("sign nothing before they are attested, nor when they are not of this device")
  func unattested() async throws {
    let device = try device()
    let keyID = try await device.generateKey()
    let stranger = try await self.device().generateKey()
    for unusable in [keyID, stranger, "", "../../etc/passwd"] {
      await #expect(throws: KeyServiceError.invalidKey) {
        try await device.generateAssertion(unusable, clientDataHash: Self.hash)
      }
    }
    await #expect(throws: KeyServiceError.invalidKey) {
      try await device.attestKey(stranger, clientDataHash: Self.hash)
    }
  }

  @Test("hand out no assertion whose counter could not be saved, and none twice")
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

  @Test("are 256 different ones after 256 requests at once")
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

/// Keys in memory, whose saving can be made to fail.
private final class FailingKeyStore: SimulatedKeyStore {
  let fails = LockedValue(false)
  private let keys = MemoryKeyStore()

  func key(_ keyID: String) -> SimulatedKey? { keys.key(keyID) }

  func save(_ key: SimulatedKey) throws(KeyStoreError) {
    if fails.withLock({ $0 }) { throw .unwritable("disk full") }
    keys.save(key)
  }
}
