import AttestGate
import ByteCoding
import Cryptography
import GateFixtures
import SQLiteStore
import Testing

@Suite("Keys of identities")
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

  @Test("There is none before it is asked for, then one that signs and is published, on every node the same")
  func first() async throws {
    #expect(!keys.isReady && signing == nil && published.isEmpty)
    try await keys.prepare()
    let kid = try #require(signing)
    #expect(published == [kid])
    let other = IdentityKeys(storage: store, clock: clock.wallClock)
    try await other.prepare()
    #expect(other.signing(at: clock.now)?.kid == kid)
  }

  @Test("A new key is published for the overlap before it signs, and the old one for as long after it has")
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

  @Test("Without an overlap the old key is gone at once, as one that was stolen has to be")
  func atOnce() async throws {
    try await keys.prepare()
    let stolen = try #require(signing)
    #expect(try await keys.rotate(overlap: .zero))
    #expect(published.count == 1 && signing == published[0] && signing != stolen)
  }

  @Test("A key that is due is followed by one, once for all nodes, and not before")
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

  @Test("Without a period keys are made, and never changed")
  func never() async throws {
    let housekeeping = IdentityKeyRotation(keys: keys, every: nil, overlap: .seconds(10))
    #expect(try await !housekeeping.run())
    let kid = try #require(signing)
    clock.advance(by: .seconds(1_000_000_000))
    #expect(try await !housekeeping.run())
    #expect(signing == kid)
  }

  @Test("A node whose clock is behind signs with the key that is published the longest")
  func behind() async throws {
    try await keys.prepare()
    #expect(keys.signing(at: clock.now.advanced(by: .seconds(-5)))?.kid == signing)
  }

  @Test("A ring has a key, and each of them once")
  func rings() throws {
    let key = IdentityKey(privateKey: try P256PrivateKey(), signsFrom: clock.now)
    #expect(IdentityKeyRing(keys: []) == nil)
    #expect(IdentityKeyRing(keys: [key, key]) == nil)
    #expect(IdentityKeyRing(keys: [key])?.keys == [key])
  }
}
