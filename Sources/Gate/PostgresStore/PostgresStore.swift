public import AppAttest
public import AttestGate
public import ByteCoding
public import Databases
internal import Locking

/// A store in a PostgreSQL database, for several gates.
///
/// A commit is durable according to the server's settings (`synchronous_commit` is at least `on`) before a call
/// returns. The first calls open the connections. After a fault they are reopened with growing delays, and calls are
/// refused immediately meanwhile. No call blocks its thread.
public final class PostgresStore: Sendable {
  /// Capacity limits and timeouts.
  public struct Limits: Sendable, Hashable {
    /// The number of connections for admissions. All admissions of one key use the same connection.
    public var admissionLanes = 2
    /// The maximum number of calls that wait for a connection. Further calls throw `.overloaded`.
    public var mostWaiting = 4096
    /// The maximum number of admissions in one transaction.
    public var mostAtOnce = 256
    /// The time after which the server cancels a statement.
    public var statementTimeout = Duration.seconds(3)
    /// The time after which the server stops waiting for a row lock.
    public var lockTimeout = Duration.seconds(2)
    /// The time after which this side stops waiting for a result and closes the connection.
    public var patience = Duration.seconds(6)

    public init() {}

    /// The limits for commands that read or write everything: statements have no timeout, and keepalives detect a
    /// broken connection.
    public static var patient: Limits {
      var limits = Limits()
      limits.statementTimeout = .zero
      limits.lockTimeout = .seconds(30)
      limits.patience = .seconds(86_400)
      return limits
    }
  }

  /// Uses the connection and returns the error, if there is one.
  private typealias StoreJob = @Sendable (PostgresConnection) -> StoreError?

  public let parameters: ConnectionParameters
  private let record = StoreHealthRecord()
  private let admissions: [ConnectionWorker<KeyUse, Admittance>]
  private let lookups: ConnectionWorker<KeyID, KeyRecord?>
  /// What closes the sessions of revoked keys and what a gate must do in time: no registration, list or maintenance
  /// comes before it.
  private let urgent: ConnectionWorker<StoreJob, Bool>
  /// Everything else, and what holds locks of its connection.
  private let jobs: ConnectionWorker<StoreJob, Bool>
  /// Writes decisions about keys, on a connection of its own. Its faults are no faults of the store.
  private let history: ConnectionWorker<StoreJob, Bool>
  let listener: NoticeListener

  /// Creates a store in the database of `parameters`. Opens no connection yet.
  public init(_ parameters: ConnectionParameters, limits: Limits = Limits()) {
    self.parameters = parameters
    let dialer = Dialer(parameters: parameters, limits: limits)
    admissions = (0..<max(1, limits.admissionLanes)).map { [record] number in
      ConnectionWorker(
        "admissions \(number)", dialer: dialer, health: record, mostAtOnce: limits.mostAtOnce,
        probe: ProbeStatements.write
      ) {
        (connection, uses) throws(StoreError) in try AdmissionBatch.admit(uses, on: connection)
      }
    }
    lookups = ConnectionWorker(
      "lookups", dialer: dialer, health: record, mostAtOnce: limits.mostAtOnce, probe: ProbeStatements.read
    ) {
      (connection, keys) throws(StoreError) in try KeyStatements.records(of: keys, on: connection)
    }
    let perform: ConnectionWorker<StoreJob, Bool>.Work = { (connection, jobs) throws(StoreError) in
      jobs.map { job in job(connection).map { .failure($0) } ?? .success(true) }
    }
    urgent = ConnectionWorker(
      "urgent", dialer: dialer, health: record, mostAtOnce: 1, probe: ProbeStatements.write, work: perform)
    jobs = ConnectionWorker(
      "jobs", dialer: dialer, health: record, mostAtOnce: 1, probe: ProbeStatements.write, work: perform)
    history = ConnectionWorker(
      "history", dialer: dialer, health: StoreHealthRecord(), mostAtOnce: 1, probe: ProbeStatements.read, work: perform)
    listener = NoticeListener(dialer: dialer)
  }

  public var place: String { "postgres://\(parameters.place)" }

  /// Whether the most recent calls succeeded.
  public var health: StoreHealth { record.health }

  /// The number of admissions that wait for the ones in progress.
  var countOfWaitingAdmissions: Int { admissions.map(\.countOfWaiting).reduce(0, +) }

  /// Connects, migrates and verifies that the database accepts writes, so that a fault is known before the first
  /// client connects. The call is optional, and an error is not final.
  public func open() async throws(StoreError) {
    try await run { connection throws(StoreError) in try ProbeStatements.write(on: connection) }
  }

  /// Completes the waiting calls and closes the store permanently. Later calls throw `.closed`.
  public func close() async {
    // An empty job at the end of each queue: when it finishes, all earlier jobs have finished and reported their own
    // errors.
    _ = try? await run { _ throws(StoreError) in }
    if urgent.hasStarted { _ = try? await runUrgently { _ throws(StoreError) in } }
    for worker in admissions { worker.close() }
    lookups.close()
    urgent.close()
    jobs.close()
    history.close()
    listener.close()
  }

  /// Runs `body` on the connection for calls other than admissions and lookups, one after another.
  func run<Value: Sendable>(
    _ body: @escaping @Sendable (PostgresConnection) throws(StoreError) -> Value
  ) async throws(StoreError) -> Value {
    try await Self.run(on: jobs, body)
  }

  /// Runs `body` on the connection for calls that must not wait for registrations and lists, one after another.
  func runUrgently<Value: Sendable>(
    _ body: @escaping @Sendable (PostgresConnection) throws(StoreError) -> Value
  ) async throws(StoreError) -> Value {
    try await Self.run(on: urgent, body)
  }

  /// Runs `body` on the connection for decisions about keys, one after another.
  func runForHistory<Value: Sendable>(
    _ body: @escaping @Sendable (PostgresConnection) throws(StoreError) -> Value
  ) async throws(StoreError) -> Value {
    try await Self.run(on: history, body)
  }

  private static func run<Value: Sendable>(
    on worker: ConnectionWorker<StoreJob, Bool>,
    _ body: @escaping @Sendable (PostgresConnection) throws(StoreError) -> Value
  ) async throws(StoreError) -> Value {
    let outcome = LockedValue<Value?>(nil)
    _ = try await worker.run { connection in
      do throws(StoreError) {
        let value = try body(connection)
        outcome.withLock { $0 = value }
        return nil
      } catch {
        return error
      }
    }
    guard let value = outcome.withLock({ $0 }) else { throw .failed(reason: "no answer") }
    return value
  }
}

extension PostgresStore: KeyRegistry {
  public func register(_ registration: Registration) async throws(StoreError) -> Insertion {
    try await run { connection throws(StoreError) in try KeyStatements.register(registration, on: connection) }
  }

  public func record(of keyID: KeyID) async throws(StoreError) -> KeyRecord? { try await lookups.run(keyID) }

  public func receipt(of keyID: KeyID) async throws(StoreError) -> [UInt8]? {
    try await run { connection throws(StoreError) in try KeyStatements.receipt(of: keyID, on: connection) }
  }

  public func admit(_ use: KeyUse) async throws(StoreError) -> Admittance {
    // A key id is a hash, so its first byte distributes keys evenly.
    let worker = Int(use.keyID.bytes.first ?? 0) % admissions.count
    return try await admissions[worker].run(use)
  }

  public func revoke(_ keyID: KeyID, at now: Timestamp) async throws(StoreError) -> Bool {
    try await runUrgently { connection throws(StoreError) in try KeyStatements.revoke(keyID, at: now, on: connection) }
  }

  public func restore(_ keyID: KeyID) async throws(StoreError) -> Bool {
    try await runUrgently { connection throws(StoreError) in try KeyStatements.restore(keyID, on: connection) }
  }

  public func forgetNonces(issuedBy instant: Timestamp) async throws(StoreError) {
    try await run { connection throws(StoreError) in
      try NonceStatements.raiseWatermark(to: instant, on: connection)
    }
    while !Task.isCancelled,
      try await run({ connection throws(StoreError) in try NonceStatements.deletePortion(on: connection) })
    {}
  }
}

extension PostgresStore: IdentityKeyStorage {
  public func identityKeys(orStoring candidate: IdentityKeyRing) async throws(StoreError) -> IdentityKeyRing {
    try await runUrgently { connection throws(StoreError) in
      try IdentityKeyStatements.ring(orStoring: candidate, on: connection)
    }
  }

  public func replaceIdentityKeys(
    _ expected: IdentityKeyRing, with ring: IdentityKeyRing
  ) async throws(StoreError) -> Bool {
    try await run { connection throws(StoreError) in
      try IdentityKeyStatements.replace(expected, with: ring, on: connection)
    }
  }
}

extension PostgresStore: ChallengeKeyStorage {
  public func challengeKeys(orStoring candidate: ChallengeKeyRing) async throws(StoreError) -> ChallengeKeyRing {
    try await runUrgently { connection throws(StoreError) in
      try ChallengeKeyStatements.ring(orStoring: candidate, on: connection)
    }
  }

  public func replaceChallengeKeys(
    _ expected: ChallengeKeyRing, with ring: ChallengeKeyRing
  ) async throws(StoreError) -> Bool {
    try await run { connection throws(StoreError) in
      try ChallengeKeyStatements.replace(expected, with: ring, on: connection)
    }
  }

  public func replaceChallengeKeys(with ring: ChallengeKeyRing) async throws(StoreError) {
    try await run { connection throws(StoreError) in try ChallengeKeyStatements.replace(with: ring, on: connection) }
  }
}
