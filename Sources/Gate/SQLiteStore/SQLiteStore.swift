public import AppAttest
public import AttestGate
public import ByteCoding
internal import GRDB

/// The gate's memory in one SQLite file, for one machine.
///
/// A commit is on the disk (`synchronous = FULL`) before a call returns. The file is opened by the first call; a
/// fault of the disk, the file or its permissions refuses the calls that it meets, and the store works again as soon
/// as the fault is gone, without a restart.
public final class SQLiteStore: Sendable {
  public let path: String
  private let file: DatabaseFile
  let writes: GroupCommitQueue
  let reads: GroupCommitQueue
  private let record = StoreHealthRecord()
  let notifier = ChangeNotifier()

  /// A store in the file at `path`, made with mode 0600 if there is none; its folder must exist.
  ///
  /// - Parameters:
  ///   - mostWaiting: how many calls may wait before further ones are refused as `overloaded`, for writes and reads
  ///     each.
  ///   - busyTimeout: how long another process may hold the file, in seconds, before calls are refused as `locked`.
  public init(path: String, mostWaiting: Int = 4096, busyTimeout: Double = 2) {
    self.path = path
    file = DatabaseFile(path: path, busyTimeout: busyTimeout)
    writes = GroupCommitQueue(file: file, access: .write, health: record, mostWaiting: mostWaiting)
    reads = GroupCommitQueue(file: file, access: .read, health: record, mostWaiting: mostWaiting)
  }

  public var place: String { "sqlite://\(path)" }

  /// How the last calls ended.
  public var health: StoreHealth { record.health }

  /// What has been written since the store was made.
  public var writeTally: BatchTally { writes.tally }

  /// Opens and migrates the file and shows that it can be written, so that a fault is known before the first client
  /// comes. Calling it is not needed, and an error is not final.
  public func open() async throws(StoreError) {
    try await writes.run { try NonceStatements(db: $0).rewriteWatermark() }
  }

  /// Finishes the writes that wait, and closes the file for good: later calls are refused as `closed`.
  public func close() async {
    // A job of its own at the end of the lane: when it is answered, so are those before it. Its fault would be theirs.
    _ = try? await writes.run { _ in }
    notifier.close()
    file.close()
  }

  /// Writes something that other parts of the gate want to hear of.
  func change<Value: Sendable>(
    _ body: @escaping @Sendable (Database) throws -> Value
  ) async throws(StoreError) -> Value {
    defer { notifier.notify() }
    return try await writes.run(body)
  }
}

/// How many calls have been committed, and in how many transactions.
public struct BatchTally: Sendable, Hashable {
  public internal(set) var calls = 0
  public internal(set) var commits = 0
}

extension SQLiteStore: KeyRegistry {
  public func register(_ registration: Registration) async throws(StoreError) -> Insertion {
    try await writes.run { try KeyStatements(db: $0).register(registration) }
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
