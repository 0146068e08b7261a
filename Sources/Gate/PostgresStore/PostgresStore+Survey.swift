public import AttestGate
internal import Postgres

extension PostgresStore {
  /// A connection of its own, which ends with the call. It takes as long as libpq's `connect_timeout` for each host.
  public func survey() async throws(StoreError) -> StoreStatistics {
    let result = await withCheckedContinuation {
      (continuation: CheckedContinuation<Result<StoreStatistics, StoreError>, Never>) in
      let parameters = parameters
      let isStarted = Worker.start {
        continuation.resume(returning: Result { () throws(StoreError) in try Self.look(parameters) })
      }
      if !isStarted { continuation.resume(returning: .failure(.unreachable(reason: "no thread can be started"))) }
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
