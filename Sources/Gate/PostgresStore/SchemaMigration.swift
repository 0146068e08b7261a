internal import AttestGate
internal import Databases
internal import Dispatch
internal import Locking

/// Brings the tables to this version, on a connection and a thread of its own.
///
/// A large store may need minutes for an index. The calls that wait for a connection have less time: they are refused
/// while the migration goes on. All connections of a store share one migration.
final class SchemaMigration: Sendable {
  private let current = LockedValue<Run?>(nil)

  /// Starts the migration, or joins the one that is running, and waits for its end. Blocks for at most `limit`.
  ///
  /// - Throws: `.unreachable` if the migration is still running, or the reason why it failed.
  func migrate(_ parameters: ConnectionParameters, waiting limit: Duration) throws(StoreError) {
    let (run, isNew) = current.withLock { current -> (Run, Bool) in
      if let run = current, !run.hasEnded { return (run, false) }
      let run = Run()
      current = run
      return (run, true)
    }
    if isNew, !Worker.start({ run.perform(parameters) }) {
      run.end(.failure(.unreachable(reason: "cannot start a thread for the migration")))
    }
    try run.wait(atMost: limit)
  }

  private final class Run: Sendable {
    private let outcome = LockedValue<Result<Void, StoreError>?>(nil)
    private let alarm = DispatchSemaphore(value: 0)

    var hasEnded: Bool { outcome.withLock { $0 != nil } }

    func perform(_ parameters: ConnectionParameters) {
      do throws(StoreError) {
        // Without the limits of calls. It has a lease of its own, so that no restore begins meanwhile.
        let connection = try Dialer(parameters: parameters, limits: .patient).connect()
        try StoreLease.share(on: connection)
        try PostgresSchema.migrate(connection)
        end(.success(()))
      } catch {
        end(.failure(error))
      }
    }

    func end(_ result: Result<Void, StoreError>) {
      outcome.withLock { $0 = result }
      alarm.signal()
    }

    func wait(atMost limit: Duration) throws(StoreError) {
      let nanoseconds = limit.components.seconds * 1_000_000_000 + limit.components.attoseconds / 1_000_000_000
      guard alarm.wait(timeout: .now() + .nanoseconds(Int(nanoseconds))) == .success else {
        throw .unreachable(reason: "its tables are being migrated to this version, which goes on")
      }
      // For the next thread that waits.
      alarm.signal()
      if case .failure(let error) = outcome.withLock({ $0 }) { throw error }
    }
  }
}
