internal import AttestGate
internal import Databases

/// Opens connections and prepares them for use.
struct Dialer: Sendable {
  let parameters: ConnectionParameters
  let limits: PostgresStore.Limits
  private let migration = SchemaMigration()

  // A stronger `remote_apply` is kept, since the operator may have chosen it. The idle timeout releases the locks of
  // a process that was stopped within a transaction; it is long enough for a process on a busy machine.
  private static let settings = Statement(
    "settings",
    """
    SELECT set_config('statement_timeout', $1, false), set_config('lock_timeout', $2, false),
      set_config('idle_in_transaction_session_timeout', $3, false),
      set_config('synchronous_commit', CASE current_setting('synchronous_commit')
        WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, false) AS synchronous_commit
    """)

  init(parameters: ConnectionParameters, limits: PostgresStore.Limits) {
    (self.parameters, self.limits) = (parameters, limits)
  }

  /// Connects, ensures that commits are durable before they are answered, takes the shared lease and migrates.
  /// Blocks.
  ///
  /// - Throws: `.unreachable` if the migration needs longer than `limits.patience`. It goes on, and a later call finds
  ///   the tables migrated.
  func open() throws(StoreError) -> PostgresConnection {
    if let connection = try openMigrated() { return connection }
    try migration.migrate(parameters, waiting: limits.patience)
    return try openShared()
  }

  /// Returns `nil` if the tables are of an earlier version. The connection is closed then, since the migration has its
  /// own.
  private func openMigrated() throws(StoreError) -> PostgresConnection? {
    let connection = try openShared()
    return try PostgresSchema.isCurrent(connection) ? connection : nil
  }

  private func openShared() throws(StoreError) -> PostgresConnection {
    let connection = try connect()
    try StoreLease.share(on: connection)
    return connection
  }

  /// Connects like `open`, but neither takes the lease nor migrates.
  func connect() throws(StoreError) -> PostgresConnection {
    let connection = try PostgresConnection.open(parameters, patience: limits.patience)
    try PoolerProbe.check(connection) { () throws(StoreError) in
      try PostgresConnection.open(parameters, patience: limits.patience)
    }
    let answer = try connection.ask(
      Call(
        Self.settings, Parameter(Self.milliseconds(limits.statementTimeout)),
        Parameter(Self.milliseconds(limits.lockTimeout)), Parameter(Self.milliseconds(limits.patience * 5))))
    do throws(MalformedColumn) {
      let level: String? = try answer.rows.first?.read("synchronous_commit") { $0 }
      guard level == "on" || level == "remote_apply" else {
        throw MalformedColumn(name: "synchronous_commit")
      }
    } catch {
      throw .unreachable(reason: "the server does not accept synchronous_commit = on")
    }
    return connection
  }

  private static func milliseconds(_ duration: Duration) -> String {
    "\(duration.components.seconds * 1000 + duration.components.attoseconds / 1_000_000_000_000_000)ms"
  }
}
