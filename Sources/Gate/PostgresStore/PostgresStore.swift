public import AppAttest
public import AttestGate
public import ByteCoding
internal import Locking
public import Postgres

/// The gate's store in a PostgreSQL database, for several gates.
///
/// A commit is durable by the server's own settings (`synchronous_commit` is at least `on`) before a call returns.
/// The first calls open the connections, and after a fault they are opened again with growing pauses; meanwhile calls
/// are refused at once. No call blocks the thread on which it is made.
public final class PostgresStore: Sendable {
  /// How much, and for how long.
  public struct Limits: Sendable, Hashable {
    /// Connections that admit. The admissions of one key go over one of them.
    public var admissionLanes = 2
    /// How many calls may wait for a connection before further ones are refused as `overloaded`.
    public var mostWaiting = 4096
    /// How many admissions share a transaction at most.
    public var mostAtOnce = 256
    /// After which the server gives a statement up.
    public var statementTimeout = Duration.seconds(3)
    /// After which the server gives up waiting for a row that another transaction holds.
    public var lockTimeout = Duration.seconds(2)
    /// After which this side gives up waiting for an answer, and the connection with it.
    public var patience = Duration.seconds(6)

    public init() {}

    /// For commands that read or write everything: a statement may take as long as it takes, and what hangs is seen by
    /// the connection's keepalives.
    public static var patient: Limits {
      var limits = Limits()
      limits.statementTimeout = .zero
      limits.lockTimeout = .seconds(30)
      limits.patience = .seconds(86_400)
      return limits
    }
  }

  /// Does something with the connection and says what stood in the way.
  private typealias StoreJob = @Sendable (PostgresConnection) -> StoreError?

  public let parameters: ConnectionParameters
  private let record = StoreHealthRecord()
  private let admissions: [ConnectionWorker<KeyUse, Admittance>]
  private let lookups: ConnectionWorker<KeyID, KeyRecord?>
  private let jobs: ConnectionWorker<StoreJob, Bool>
  let listener: NoticeListener

  /// A store in the database that `parameters` name. Nothing is opened yet.
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
    jobs = ConnectionWorker(
      "errands", dialer: dialer, health: record, mostAtOnce: 1, probe: ProbeStatements.write
    ) {
      (connection, jobs) throws(StoreError) in
      jobs.map { job in job(connection).map { .failure($0) } ?? .success(true) }
    }
    listener = NoticeListener(dialer: dialer)
  }

  public var place: String { "postgres://\(parameters.place)" }

  /// How the last calls ended.
  public var health: StoreHealth { record.health }

  /// How many admissions wait for those that are under way.
  var countOfWaitingAdmissions: Int { admissions.map(\.countOfWaiting).reduce(0, +) }

  /// Connects, migrates and shows that the database takes writes, so that a fault is known before the first client
  /// comes. Calling it is not needed, and an error is not final.
  public func open() async throws(StoreError) {
    try await run { connection throws(StoreError) in try ProbeStatements.write(on: connection) }
  }

  /// Finishes the calls that wait and closes for good: later calls are refused as `closed`.
  public func close() async {
    // A job of its own at the end: when it is answered, so are those before it. Its fault would be theirs.
    _ = try? await run { _ throws(StoreError) in }
    for worker in admissions { worker.close() }
    lookups.close()
    jobs.close()
    listener.close()
  }

  /// Runs `body` on the connection for whatever is no admission and no lookup, one after another.
  func run<Value: Sendable>(
    _ body: @escaping @Sendable (PostgresConnection) throws(StoreError) -> Value
  ) async throws(StoreError) -> Value {
    let outcome = LockedValue<Value?>(nil)
    _ = try await jobs.run { connection in
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
    // A key's id is a hash: its first byte spreads the keys evenly.
    let worker = Int(use.keyID.bytes.first ?? 0) % admissions.count
    return try await admissions[worker].run(use)
  }

  public func revoke(_ keyID: KeyID, at now: Timestamp) async throws(StoreError) -> Bool {
    try await run { connection throws(StoreError) in try KeyStatements.revoke(keyID, at: now, on: connection) }
  }

  public func restore(_ keyID: KeyID) async throws(StoreError) -> Bool {
    try await run { connection throws(StoreError) in try KeyStatements.restore(keyID, on: connection) }
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
    try await run { connection throws(StoreError) in
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
    try await run { connection throws(StoreError) in
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
