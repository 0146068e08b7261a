public import AttestGate

/// An invariant of the gate's storage, checked on a real store.
///
/// The tests of every store check all invariants: `@Test(arguments: StoreInvariant.all) func invariant(_ invariant:
/// StoreInvariant) { try await invariant.check(store) }`
public struct StoreInvariant: Sendable, CustomStringConvertible {
  public typealias Store = any GateStore

  public let description: String
  /// Checks the invariant on an empty store.
  public let check: @Sendable (Store) async throws -> Void

  init(_ description: String, _ check: @escaping @Sendable (Store) async throws -> Void) {
    self.description = description
    self.check = check
  }

  public static let all =
    registrations + admissions + counters + races + nonces + challengeKeys + identityKeys + catalog + copies + changes
    + membership + androidKeys + risks + attestationKeys + decisions + everythingAtOnce
}
