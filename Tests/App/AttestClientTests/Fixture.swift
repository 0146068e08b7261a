import AttestClient
import Foundation
import Wire
import Locking
import Testing

/// A session with its dependencies.
struct Fixture {
  let gate: ScriptedGate
  let keys: RecordingKeyService
  let store = FaultyKeyIDStore()
  let clock = ManualClock()
  let session: AttestSession

  init(
    registrations: [ScriptedGate.Answer] = [], challenges: [ScriptedGate.Answer] = [], isSupported: Bool = true,
    attestFailures: [KeyServiceError] = [], assertFailures: [KeyServiceError] = []
  ) throws {
    gate = ScriptedGate(registrations: registrations, challenges: challenges)
    keys = try RecordingKeyService(
      isSupported: isSupported, attestFailures: attestFailures, assertFailures: assertFailures)
    session = try Self.makeSession(gate: gate, keys: keys, store: store, clock: clock)
  }

  /// Returns a second session with the same store, as after a restart of the app.
  func restarted() throws -> AttestSession {
    try Self.makeSession(gate: gate, keys: keys, store: store, clock: clock)
  }

  private static func makeSession(
    gate: ScriptedGate, keys: RecordingKeyService, store: FaultyKeyIDStore, clock: ManualClock
  ) throws -> AttestSession {
    let url = try #require(URL(string: "https://gate.example:6200"))
    return try AttestSession(gate: url, keys: keys, store: store, http: gate, now: { clock.now })
  }
}

/// Scripted upgrades: each attempt consumes one outcome, and further attempts succeed.
final class ScriptedUpgrades: Sendable {
  private let outcomes: LockedValue<[UpgradeError]>
  private let seen = LockedValue<[AssertionHeaders]>([])

  init(_ outcomes: [UpgradeError] = []) { self.outcomes = LockedValue(outcomes) }

  convenience init(refusedWith codes: [GateRefusalCode]) {
    self.init(codes.map { .refused(GateRefusal(status: 401, code: $0, text: "no")) })
  }

  /// The headers of every attempt so far.
  var attempts: [AssertionHeaders] { seen.withLock { $0 } }

  func open(_ headers: AssertionHeaders) throws(UpgradeError) -> String {
    seen.withLock { $0.append(headers) }
    if let outcome = outcomes.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) { throw outcome }
    return "socket"
  }
}
