import AttestGate
import ByteCoding
import Cryptography
import GateFixtures
import SQLiteStore
import Testing

@Suite("Identity signing keys")
struct IdentityKeyTests {
  private let clock = ManualClock()
  private let folder: TemporaryFolder
  private let store: SQLiteStore
  private let keys: IdentityKeys

  init() throws {
    folder = try TemporaryFolder()
    store = SQLiteStore(path: folder.file("state.db"))
    keys = IdentityKeys(storage: store, clock: clock.wallClock)
  }

  private var signing: String? { keys.signing(at: clock.now)?.kid }
  private var published: [String] { keys.published(at: clock.now).map(\.kid) }

  @Test("Keys do not exist before `prepare`; afterwards one key signs and is published, the same on every node")
  func first() async throws {
    #expect(!keys.isReady && signing == nil && published.isEmpty)
    try await keys.prepare()
    let kid = try #require(signing)
    #expect(published == [kid])
    let other = IdentityKeys(storage: store, clock: clock.wallClock)
    try await other.prepare()
    #expect(other.signing(at: clock.now)?.kid == kid)
  }

  @Test(
    "A new key is published for the overlap before it signs; the old key stays published for the overlap after that"
  )
  func overlap() async throws {
    try await keys.prepare()
    let old = try #require(signing)
    #expect(try await keys.rotate(overlap: .seconds(3600)))
    let new = try #require(published.first)
    #expect(new != old)
    let stages: [(Duration, signing: String, published: [String])] = [
      (.zero, old, [new, old]), (.seconds(3599), old, [new, old]), (.seconds(1), new, [new, old]),
      (.seconds(3599), new, [new, old]), (.seconds(1), new, [new]),
    ]
    for stage in stages {
      clock.advance(by: stage.0)
      #expect(signing == stage.signing && published == stage.published)
    }
  }

  @Test("Without an overlap the old key is removed immediately, which a stolen key requires")
  func atOnce() async throws {
    try await keys.prepare()
    let stolen = try #require(signing)
    #expect(try await keys.rotate(overlap: .zero))
    #expect(published.count == 1 && signing == published[0] && signing != stolen)
  }

  @Test("A key is replaced when it reaches its rotation age, once for all nodes, and not before")
  func due() async throws {
    let other = IdentityKeys(storage: store, clock: clock.wallClock)
    for node in [keys, other] { #expect(try await !node.rotateIfDue(every: .seconds(100), overlap: .seconds(10))) }
    clock.advance(by: .seconds(99))
    #expect(try await !keys.rotateIfDue(every: .seconds(100), overlap: .seconds(10)))
    clock.advance(by: .seconds(1))
    #expect(try await keys.rotateIfDue(every: .seconds(100), overlap: .seconds(10)))
    for node in [keys, other] { #expect(try await !node.rotateIfDue(every: .seconds(100), overlap: .seconds(10))) }
    #expect(other.published(at: clock.now).map(\.kid) == published)
  }

  @Test("Without a rotation period keys are created and never replaced")
  func never() async throws {
    let rotation = IdentityKeyRotation(keys: keys, every: nil, overlap: .seconds(10))
    #expect(try await !rotation.run())
    let kid = try #require(signing)
    clock.advance(by: .seconds(1_000_000_000))
    #expect(try await !rotation.run())
    #expect(signing == kid)
  }

  @Test("A node whose clock is late signs with the key that has been published the longest")
  func lateClock() async throws {
    try await keys.prepare()
    #expect(keys.signing(at: clock.now.advanced(by: .seconds(-5)))?.kid == signing)
  }

  @Test("A ring contains at least one key, and each key once")
  func rings() throws {
    let key = IdentityKey(privateKey: try P256PrivateKey(), signsFrom: clock.now)
    #expect(IdentityKeyRing(keys: []) == nil)
    #expect(IdentityKeyRing(keys: [key, key]) == nil)
    #expect(IdentityKeyRing(keys: [key])?.keys == [key])
  }
}
