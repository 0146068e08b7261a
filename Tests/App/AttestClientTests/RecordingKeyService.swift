import AttestClient
import ByteCoding
import SimulatedDevice
import Locking

/// A simulated device that records its calls and fails as scripted by a test.
final class RecordingKeyService: AppAttestKeyService {
  enum Call: Sendable, Hashable {
    case generate
    case attest([UInt8])
    case assert([UInt8])
  }

  private static let appID = "AAABBBCCC1.com.example.app"
  private static let authority = Result { try TestAuthority(appID: appID, at: .now()) }

  let isSupported: Bool
  private let device: SimulatedKeyService
  private let calls = LockedValue<[Call]>([])
  private let attestFailures = LockedValue<[KeyServiceError]>([])
  private let assertFailures = LockedValue<[KeyServiceError]>([])
  private let activeAssertions = Gauge()

  init(isSupported: Bool = true, attestFailures: [KeyServiceError] = [], assertFailures: [KeyServiceError] = []) throws
  {
    self.isSupported = isSupported
    let app = SimulatedApp(appID: Self.appID)
    device = SimulatedKeyService(authority: try Self.authority.get(), app: app, keys: MemoryKeyStore())
    self.attestFailures.withLock { $0 = attestFailures }
    self.assertFailures.withLock { $0 = assertFailures }
  }

  var recorded: [Call] { calls.withLock { $0 } }
  var generatedKeys: Int { recorded.count { $0 == .generate } }
  var mostAssertionsAtOnce: Int { activeAssertions.most }

  func generateKey() async throws(KeyServiceError) -> String {
    calls.withLock { $0.append(.generate) }
    return try await device.generateKey()
  }

  func attestKey(_ keyID: String, clientDataHash: [UInt8]) async throws(KeyServiceError) -> [UInt8] {
    calls.withLock { $0.append(.attest(clientDataHash)) }
    if let failure = Self.next(attestFailures) { throw failure }
    return try await device.attestKey(keyID, clientDataHash: clientDataHash)
  }

  func generateAssertion(_ keyID: String, clientDataHash: [UInt8]) async throws(KeyServiceError) -> [UInt8] {
    calls.withLock { $0.append(.assert(clientDataHash)) }
    if let failure = Self.next(assertFailures) { throw failure }
    activeAssertions.enter()
    defer { activeAssertions.leave() }
    await Task.yield()
    return try await device.generateAssertion(keyID, clientDataHash: clientDataHash)
  }

  private static func next(_ failures: LockedValue<[KeyServiceError]>) -> KeyServiceError? {
    failures.withLock { $0.isEmpty ? nil : $0.removeFirst() }
  }
}

/// Counts concurrent operations and their maximum.
final class Gauge: Sendable {
  private let count = LockedValue((now: 0, most: 0))
  var most: Int { count.withLock { $0.most } }
  func enter() { count.withLock { $0 = ($0.now + 1, max($0.most, $0.now + 1)) } }
  func leave() { count.withLock { $0.now -= 1 } }
}
