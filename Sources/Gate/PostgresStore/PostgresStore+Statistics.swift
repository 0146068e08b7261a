public import AttestGate
internal import Databases

extension PostgresStore {
  /// Inspects the database on a separate connection. Takes at most libpq's `connect_timeout` per host.
  public func statistics() async throws(StoreError) -> StoreStatistics {
    let result = await withCheckedContinuation {
      (continuation: CheckedContinuation<Result<StoreStatistics, StoreError>, Never>) in
      let parameters = parameters
      let isStarted = Worker.start {
        continuation.resume(returning: Result { () throws(StoreError) in try Self.look(parameters) })
      }
      if !isStarted { continuation.resume(returning: .failure(.unreachable(reason: "cannot start a thread"))) }
    }
    return try result.get()
  }

  private static func look(_ parameters: ConnectionParameters) throws(StoreError) -> StoreStatistics {
    let connection = try PostgresConnection.open(parameters, patience: .seconds(3))
    let missing = PostgresSchema.migrations.count - (try PostgresSchema.version(connection))
    switch missing {
    case 0: return .current
    case PostgresSchema.migrations.count: return .absent
    default: return .outdated(migrations: missing)
    }
  }
}
