public import AppAttest
public import AttestGate
public import ByteCoding
internal import GRDB

/// A gate's store in one SQLite file, for one machine.
///
/// A commit is on disk (`synchronous = FULL`) before a call returns. The first call opens the file. A fault of the
/// disk, the file or its permissions fails the calls that encounter it. The store recovers without a restart once the
/// fault is gone.
public final class SQLiteStore: Sendable {
  public let path: String
  private let file: DatabaseFile
  let writes: StoreQueue
  let reads: StoreQueue
  /// Writes decisions about keys, in transactions of its own. Its faults are no faults of the store.
  let history: StoreQueue
  private let record = StoreHealthRecord()
  let notifier = ChangeNotifier()

  /// Creates a store for the file at `path`. A missing file is created with mode 0600; its folder must exist.
  ///
  /// - Parameters:
  ///   - mostWaiting: The maximum number of waiting calls, for writes and for reads each. Further calls throw
  ///     `.overloaded`.
  ///   - busyTimeout: The maximum time to wait for another process that holds the file, in seconds. After it, calls
  ///     throw `.locked`.
  public init(path: String, mostWaiting: Int = 4096, busyTimeout: Double = 2) {
    self.path = path
    file = DatabaseFile(path: path, busyTimeout: busyTimeout)
    writes = StoreQueue(file: file, access: .write, health: record, mostWaiting: mostWaiting)
    reads = StoreQueue(file: file, access: .read, health: record, mostWaiting: mostWaiting)
    history = StoreQueue(file: file, access: .write, health: StoreHealthRecord(), mostWaiting: mostWaiting)
  }

  public var place: String { "sqlite://\(path)" }

  /// Whether the most recent calls succeeded.
  public var health: StoreHealth { record.health }

  /// The writes since this store was created.
  public var writeTally: BatchTally { writes.tally }

  /// Opens and migrates the file and verifies that it is writable, so that a fault is known before the first client
  /// connects. The call is optional, and an error is not final.
  public func open() async throws(StoreError) {
    try await writes.run { try NonceStatements(db: $0).rewriteWatermark() }
  }

  /// Completes the waiting writes and closes the file permanently. Later calls throw `.closed`.
  public func close() async {
    // An empty job at the end of the queue: when it finishes, all earlier jobs have finished and reported their own
    // errors.
    _ = try? await writes.run { _ in }
    notifier.close()
    file.close()
  }

  /// Writes a change that other parts of the gate must learn about.
  func change<Value: Sendable>(
    _ body: @escaping @Sendable (Database) throws -> Value
  ) async throws(StoreError) -> Value {
    defer { notifier.notify() }
    return try await writes.run(body)
  }
}

/// The number of committed calls, and the number of transactions that contained them.
public struct BatchTally: Sendable, Hashable {
  public internal(set) var calls = 0
  public internal(set) var commits = 0
}

extension SQLiteStore: KeyRegistry {
  public func register(_ registration: Registration) async throws(StoreError) -> Insertion {
    guard registration.key.isOfRemoteAttestationKey else {
      return try await writes.run { try KeyStatements(db: $0).register(registration) }
    }
    return try await change { try KeyStatements(db: $0).register(registration) }
  }

  public func record(of keyID: KeyID) async throws(StoreError) -> KeyRecord? {
    try await reads.run { try KeyStatements(db: $0).record(of: keyID) }
  }

  public func receipt(of keyID: KeyID) async throws(StoreError) -> [UInt8]? {
    try await reads.run { try KeyStatements(db: $0).receipt(of: keyID) }
  }

  public func admit(_ use: KeyUse) async throws(StoreError) -> Admittance {
    try await writes.run { try KeyStatements(db: $0).admit(use) }
  }

  public func revoke(_ keyID: KeyID, at now: Timestamp) async throws(StoreError) -> Bool {
    try await change { try KeyStatements(db: $0).revoke(keyID, at: now) }
  }

  public func restore(_ keyID: KeyID) async throws(StoreError) -> Bool {
    try await change { try KeyStatements(db: $0).restore(keyID) }
  }

  public func forgetNonces(issuedBy instant: Timestamp) async throws(StoreError) {
    try await writes.run { try NonceStatements(db: $0).raiseWatermark(to: instant) }
    while !Task.isCancelled, try await writes.run({ try NonceStatements(db: $0).deletePortion() }) {}
  }
}

extension SQLiteStore: IdentityKeyStorage {
  public func identityKeys(orStoring candidate: IdentityKeyRing) async throws(StoreError) -> IdentityKeyRing {
    try await writes.run { try IdentityKeyStatements(db: $0).ring(orStoring: candidate) }
  }

  public func replaceIdentityKeys(
    _ expected: IdentityKeyRing, with ring: IdentityKeyRing
  ) async throws(StoreError) -> Bool {
    try await change { try IdentityKeyStatements(db: $0).replace(expected, with: ring) }
  }
}

extension SQLiteStore: ChallengeKeyStorage {
  public func challengeKeys(orStoring candidate: ChallengeKeyRing) async throws(StoreError) -> ChallengeKeyRing {
    try await writes.run { try ChallengeKeyStatements(db: $0).ring(orStoring: candidate) }
  }

  public func replaceChallengeKeys(
    _ expected: ChallengeKeyRing, with ring: ChallengeKeyRing
  ) async throws(StoreError) -> Bool {
    try await change { try ChallengeKeyStatements(db: $0).replace(expected, with: ring) }
  }

  public func replaceChallengeKeys(with ring: ChallengeKeyRing) async throws(StoreError) {
    try await change { db in
      try ChallengeKeyStatements(db: db).replace(with: ring)
      if let now = ring.onlyKeyMadeAt { try NonceStatements(db: db).lowerWatermark(to: now) }
    }
  }
}
