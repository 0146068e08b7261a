public import ByteCoding
public import Foundation

/// The records of the backend.
///
/// A body runs in one transaction. The store may run it more than once, so it only reads and writes records. An error
/// of the body rolls the transaction back. Services use it through `UnitOfWork`, which adds messages, notices and
/// refusals that are committed.
///
/// Removals of expired records (`remove…(…, atMost:)`) return the number of removed records. There may be more.
public protocol Store: Sendable {
  /// Runs `body` in one transaction that only reads.
  ///
  /// - Throws: the error of `body`; `MFAStoreError`.
  func read<Value: Sendable>(_ body: @escaping @Sendable (any Records) throws -> Value) async throws -> Value
  /// Runs `body` in one transaction, and returns after its commit.
  ///
  /// The first write of a request with an `UnspentIdentity` records the identity in the same transaction, whether
  /// `body` succeeds or throws. If the identity was used before, `body` does not run.
  ///
  /// - Throws: the error of `body`, after the rollback; `IdentityUsedBefore`; `MFAStoreError`.
  func write<Value: Sendable>(
    excluding others: WriteExclusion, _ body: @escaping @Sendable (any Records) throws -> Value
  ) async throws -> Value
  /// Sets the keys that authenticate new entries of the history. `Vault.open` calls it.
  func authenticateHistory(with keys: HistoryKeys)
}

extension Store {
  /// Runs `body` in one transaction that excludes all other writers, and returns after its commit.
  ///
  /// - Throws: as `write(excluding:_:)`.
  public func write<Value: Sendable>(
    _ body: @escaping @Sendable (any Records) throws -> Value
  ) async throws -> Value {
    try await write(excluding: .writers, body)
  }
}

/// What a write excludes while its transaction runs.
public enum WriteExclusion: Sendable, Hashable {
  /// All other writes of all processes: what the body has read stays true until the commit.
  case writers
  /// The rows that the body has changed. Other writes of this kind may run at the same time in other processes, and
  /// change what the body has only read. A body that finds that it needs more calls `excludeWriters()`.
  case rows
}

/// An operation of the store failed. Nothing was changed, unless the outcome of the commit is unknown.
public struct MFAStoreError: Error, Sendable, Hashable {
  /// The reason, for the log.
  public let reason: String
  /// Whether the cause is too much load, not a fault of the store.
  public let isOverload: Bool

  public init(reason: String, isOverload: Bool = false) {
    self.reason = reason
    self.isOverload = isOverload
  }

  /// The database exists and does not have the backend's tables.
  public static let noTables = MFAStoreError(reason: "it has no tables of the backend's")
  /// The deadline of the call has passed (`StoreDeadline`).
  public static let late = MFAStoreError(reason: "it did not answer in time", isOverload: true)
}

/// All records, within a transaction.
public typealias Records = UserRecords & DeviceRecords & ChallengeRecords & SessionRecords & CodeRecords
  & AttemptLimiterRecords
  & FactorRecords & TrustRecords & PushRecords & NoticeRecords & AuditRecords & KeyRecords & IdentityRecords
  & PushAddressRecords & SecurityKeyRecords & RecoveryRecords & NetworkRecords & FederationRecords & IdempotencyRecords
  & TokenRecords
  & ExportRecords & TransactionRecords

/// What a body asks of its transaction.
public protocol TransactionRecords {
  /// Returns if the transaction excludes all other writers. Otherwise the body must let the error pass: its changes are
  /// rolled back, and it runs again in a transaction that does.
  func excludeWriters() throws
}

/// The spent identities of the gate.
public protocol IdentityRecords {
  /// Spends the identity with the number `id`, and returns whether that was its first use.
  ///
  /// Of concurrent callers with the same number, in any process, one gets `true`.
  func spend(identity id: String, until end: Timestamp) throws -> Bool
  func removeIdentities(expiredBefore instant: Timestamp, atMost count: Int) throws -> Int
}

/// The calls that clients may repeat.
public protocol IdempotencyRecords {
  func idempotentCall(_ id: String) throws -> IdempotentCall?
  /// Inserts the call, or replaces the one with its id.
  func save(_ call: IdempotentCall) throws
  /// Stores the answer of the call. Does nothing if a later call has its id.
  func update(_ call: IdempotentCall) throws
  /// Removes the call. Does nothing if a later call has its id.
  func remove(_ call: IdempotentCall) throws
  func removeIdempotentCalls(startedBefore instant: Timestamp, atMost count: Int) throws -> Int
  /// Removes the oldest calls of a caller, so that `count` are left.
  func removeIdempotentCalls(of caller: String, exceptNewest count: Int) throws
}

/// The users.
public protocol UserRecords {
  func user(named key: String) throws -> User?
  func user(_ id: UUID) throws -> User?
  func insert(_ user: User) throws
  func update(_ user: User) throws
  /// Stores the language of the user. `update` does not change it.
  func saveLanguage(_ tag: String, of userID: UUID) throws
  /// The number of accounts that the app instance of `binding` created.
  func countUsers(createdBy binding: Binding) throws -> Int
  /// At most `count` users after the stored key `key`, by key. The stored key of a name that an older version accepted
  /// may differ from the key of the name.
  func users(after key: String, atMost count: Int) throws -> [(key: String, user: User)]
  /// The beginning of the requirement named `word`. If another one is stored, `word` replaces it and begins at `now`;
  /// `nil` removes it.
  func datePolicy(_ word: String?, at now: Timestamp) throws -> Timestamp?
}

/// The devices of all users. A removed device keeps a record without key and number.
public protocol DeviceRecords {
  /// The device with this id, also if it was removed.
  func device(_ id: DeviceID) throws -> Device?
  /// The devices of the user that are not removed, by age.
  func devices(of userID: UUID) throws -> [Device]
  /// Inserts the device, or replaces the one with its id.
  func save(_ device: Device) throws
}

/// The challenges for sign-ins by the key of a device.
public protocol ChallengeRecords {
  func insert(_ challenge: DeviceChallenge) throws
  func challenge(_ id: UUID) throws -> DeviceChallenge?
  /// Spends the challenge and returns whether it was open at `now`. Of concurrent callers, one gets `true`.
  func spend(challenge id: UUID, at now: Timestamp) throws -> Bool
  func countFailure(ofChallenge id: UUID) throws
  func removeChallenges(of deviceID: DeviceID) throws
  func removeChallenges(expiredBefore instant: Timestamp, atMost count: Int) throws -> Int
}

/// The sessions.
public protocol SessionRecords {
  func session(_ id: UUID) throws -> LoginSession?
  func sessions(of userID: UUID) throws -> [LoginSession]
  func insert(_ session: LoginSession) throws
  func update(_ session: LoginSession) throws
  /// Ends the sessions of the user that are live at `now`, except the newest `spared`, and returns their number. If
  /// `deviceID` is given, only the sessions of that device. It is one statement for any number of sessions.
  func revokeSessions(of userID: UUID, on deviceID: DeviceID?, sparing spared: Int, at now: Timestamp) throws -> Int
  /// Makes the sessions of the user that are live at `now` wait for the second factor (`.pending`), except the session
  /// `spared`, and returns how many did not wait before. It is one statement for any number of sessions.
  func holdSessions(of userID: UUID, sparing spared: UUID?, at now: Timestamp) throws -> Int
  func removeSessions(expiredBefore instant: Timestamp, atMost count: Int) throws -> Int
}

/// The one-time codes, and the rows that count messages and guesses.
public protocol CodeRecords {
  func insert(_ code: OneTimeCode) throws
  /// The newest code for `subject`, also if it is not open.
  func newestCode(for subject: String, _ channel: OneTimeCode.Channel) throws -> OneTimeCode?
  func update(_ code: OneTimeCode) throws
  /// The creation time of the code at `rank`, among the codes since `instant`, counted from the newest (rank 1). The
  /// codes for the subject and the codes to the target are ranked separately, and the later result is returned. `nil`
  /// if neither has that many codes.
  func timeOfCode(
    at rank: Int, for subject: String, to target: [UInt8], _ channel: OneTimeCode.Channel, since instant: Timestamp
  ) throws -> Timestamp?
  func removeCodes(createdBefore instant: Timestamp, atMost count: Int) throws -> Int
  func removeCodes(createdAfter instant: Timestamp, atMost count: Int) throws -> Int
}

/// The attempt limits, by subject.
public protocol AttemptLimiterRecords {
  func limiter(on subject: String) throws -> AttemptLimiter?
  /// At most `count` limits at an account, by the key of its name, with their subjects.
  func limiters(onAccount account: String, atMost count: Int) throws -> [(subject: String, limiter: AttemptLimiter)]
  /// - Parameter account: the key of the name of the account that the guesses were made at.
  func save(_ limiter: AttemptLimiter, on subject: String, account: String) throws
  func removeAttemptLimiters(onAccount account: String) throws
  func removeAttemptLimiters(idleSince instant: Timestamp, atMost count: Int) throws -> Int
}

/// The authenticators, backup codes and e-mail addresses of users.
public protocol FactorRecords {
  func totp(of userID: UUID) throws -> TOTPFactor?
  func save(_ factor: TOTPFactor) throws
  func removeTOTP(of userID: UUID) throws
  /// Replaces all backup codes of the user.
  func replaceBackupCodes(of userID: UUID, with hashes: [[UInt8]]) throws
  /// Whether it is an unspent backup code of the user.
  func hasBackupCode(_ hash: [UInt8], of userID: UUID) throws -> Bool
  /// Spends a backup code and returns whether it was unspent.
  func spendBackupCode(_ hash: [UInt8], of userID: UUID, at now: Timestamp) throws -> Bool
  /// Whether it is a spent backup code of the user.
  func isSpentBackupCode(_ hash: [UInt8], of userID: UUID) throws -> Bool
  func countBackupCodes(of userID: UUID) throws -> Int
  func email(of userID: UUID) throws -> Sealed?
  func saveEmail(_ email: Sealed?, of userID: UUID) throws
}

/// The tokens that operators have imported, and the authenticator apps that users have added.
public protocol TokenRecords {
  /// - Throws: if a token with this serial number is there.
  func insert(_ token: OATHToken) throws
  /// Updates the columns that can change: the name, the owner, the secret, the counter, the drift and the times.
  func update(_ token: OATHToken) throws
  func token(_ serial: TokenSerial) throws -> OATHToken?
  /// The tokens of the user, by serial number.
  func tokens(of userID: UUID) throws -> [OATHToken]
  /// At most `count` tokens after the serial number `serial`, in its order.
  func tokens(after serial: String, atMost count: Int) throws -> [OATHToken]
  func removeToken(_ id: UUID) throws
  /// Inserts the offer, or replaces the one of its session.
  func save(_ offer: AppOffer) throws
  /// The newest offer to the session. It may have expired.
  func appOffer(to sessionID: UUID) throws -> AppOffer?
  /// The offers to all sessions of the user.
  func appOffers(of userID: UUID) throws -> [AppOffer]
  func removeAppOffer(to sessionID: UUID) throws
  func removeAppOffers(of userID: UUID) throws
  func removeAppOffers(expiredBefore instant: Timestamp, atMost count: Int) throws -> Int
}

/// The security keys of users, and the challenges of their ceremonies.
public protocol SecurityKeyRecords {
  func insert(_ key: SecurityKey) throws
  /// Updates the columns that can change: the count, the backup state, the name and the last use.
  func update(_ key: SecurityKey) throws
  /// The security key with this credential, of any user.
  func securityKey(_ credentialID: CredentialID) throws -> SecurityKey?
  /// The security keys of the user, by age.
  func securityKeys(of userID: UUID) throws -> [SecurityKey]
  func removeSecurityKey(_ id: UUID, of userID: UUID) throws -> Bool
  func removeSecurityKeys(of userID: UUID) throws
  /// Inserts the challenge, or replaces the one that its session has for the same ceremony.
  func save(_ challenge: KeyChallenge) throws
  func keyChallenge(_ ceremony: KeyChallenge.Ceremony, of sessionID: UUID) throws -> KeyChallenge?
  /// Spends the challenge and returns whether it was the newest and open at `now`. Of concurrent callers, one gets
  /// `true`.
  func spend(_ challenge: KeyChallenge, at now: Timestamp) throws -> Bool
  func removeKeyChallenges(expiredBefore instant: Timestamp, atMost count: Int) throws -> Int
}

/// The connections of accounts to identity providers, and the challenges for their ID tokens.
public protocol FederationRecords {
  /// - Throws: if the account has an identity of this issuer, or if another account has this subject.
  func insert(_ identity: FederatedIdentity) throws
  /// Updates the last use.
  func update(_ identity: FederatedIdentity) throws
  /// The connection of the user of a provider, to any account.
  func federatedIdentity(of subject: ProviderSubject) throws -> FederatedIdentity?
  /// The connections of an account, by issuer.
  func federatedIdentities(of userID: UUID) throws -> [FederatedIdentity]
  /// Removes the connections of an account, and returns their number.
  func removeFederatedIdentities(of userID: UUID) throws -> Int
  func insert(_ challenge: FederationChallenge) throws
  func federationChallenge(_ id: UUID) throws -> FederationChallenge?
  /// Spends the challenge and returns whether it was open at `now`. Of concurrent callers, one gets `true`.
  func spend(federationChallenge id: UUID, at now: Timestamp) throws -> Bool
  func removeFederationChallenges(expiredBefore instant: Timestamp, atMost count: Int) throws -> Int
}

/// The trusted devices.
public protocol TrustRecords {
  /// Inserts the device with the next id, and returns the id.
  func insert(_ device: TrustedDevice) throws -> Int64
  func trustedDevices(of userID: UUID, at now: Timestamp) throws -> [TrustedDevice]
  func update(_ device: TrustedDevice) throws
  func removeTrustedDevice(_ id: Int64, of userID: UUID) throws -> Bool
  func removeTrustedDevices(of userID: UUID, boundTo binding: Binding?) throws
  func removeTrustedDevices(expiredBefore instant: Timestamp, atMost count: Int) throws -> Int
}

/// The notices of users.
public protocol NoticeRecords {
  /// Appends a notice with the user's next number, and returns the number. Services use `UnitOfWork.notify`.
  func append(_ kind: Notice.Kind, to userID: UUID, concerning: String?, at now: Timestamp) throws -> Int64
  /// The number of the user's newest notice; 0 if there is none.
  func lastNotice(of userID: UUID) throws -> Int64
  func notices(of userID: UUID, after sequence: Int64, atMost count: Int) throws -> [Notice]
  func removeNotices(before instant: Timestamp, atMost count: Int) throws -> Int
}

/// The history, and the tallies of repeated refusals.
public protocol AuditRecords {
  /// The keys that authenticate new entries; `nil` until the vault is open.
  var historyKeys: HistoryKeys? { get }
  /// Runs `body` when this transaction alone writes the history: at once if it excludes all other writers, otherwise
  /// at its end, if the changes of the caller are kept. An error then fails the whole transaction.
  func inHistoryTurn(_ body: @escaping (any AuditRecords) throws -> Void) throws
  func lastAuditEntry() throws -> (sequence: Int64, hash: [UInt8], keyNumber: UInt32?)?
  func append(_ entry: AuditEntry, hash: [UInt8]) throws
  /// Entries with their stored hashes, by number.
  func auditEntries(after sequence: Int64, atMost count: Int) throws -> [(entry: AuditEntry, hash: [UInt8])]
  /// Entries of an account, or of all accounts, the newest first.
  func auditEntries(before sequence: Int64, account: String?, atMost count: Int) throws -> [AuditEntry]
  /// Whether there is an account whose name has this key.
  func isAccount(_ key: String) throws -> Bool
  func refusalTally(_ kind: RefusalTally.Kind) throws -> RefusalTally?
  /// The tallies of windows that began at `instant` or earlier, the oldest first.
  func refusalTallies(begunBy instant: Timestamp, atMost count: Int) throws -> [RefusalTally]
  /// The tallies of windows that began after `instant`, the oldest first.
  func refusalTallies(begunAfter instant: Timestamp, atMost count: Int) throws -> [RefusalTally]
  /// Inserts the tally, or replaces the one of its kind.
  func save(_ tally: RefusalTally) throws
  /// The number of refusals of these kinds at an account, in the windows that began after `instant`.
  func countRefusals(_ events: [AuditEvent], at account: String, since instant: Timestamp) throws -> Int
  func removeRefusalTally(_ kind: RefusalTally.Kind) throws
}

/// The exports of the history.
public protocol ExportRecords {
  func auditExport(_ name: String) throws -> AuditExport?
  /// Inserts the export, or replaces the one with its name.
  func save(_ export: AuditExport) throws
}

/// The networks from which users have completed sign-ins. Empty unless a policy uses networks.
public protocol NetworkRecords {
  /// Whether the user has completed a sign-in from `network`: by the app instance of `binding`, or by any for `nil`.
  func isKnown(network: String, of userID: UUID, by binding: Binding?) throws -> Bool
  func saw(network: String, of userID: UUID, by binding: Binding, at now: Timestamp) throws
  func removeNetworks(of userID: UUID) throws
  func removeNetworks(unseenSince instant: Timestamp, atMost count: Int) throws -> Int
}

/// The recoveries. A user has at most one that is open.
public protocol RecoveryRecords {
  /// - Throws: if the user has an open recovery.
  func insert(_ recovery: Recovery) throws
  func recovery(_ id: UUID) throws -> Recovery?
  /// The recovery of the user that has not ended. It may have expired.
  func unendedRecovery(of userID: UUID) throws -> Recovery?
  /// The recoveries that are open at `now`, with their users, by the keys of the names after `key`.
  func openRecoveries(after key: String, at now: Timestamp, atMost count: Int) throws -> [(User, Recovery)]
  /// The waiting recoveries that have passed half of their waiting time at `now` and have had no reminder.
  func recoveriesToRemind(at now: Timestamp, atMost count: Int) throws -> [Recovery]
  func update(_ recovery: Recovery) throws
  func removeRecoveries(expiredBefore instant: Timestamp, atMost count: Int) throws -> Int
}

/// The sealed data keys.
public protocol KeyRecords {
  func dataKeys() throws -> [DataKey]
  func save(_ key: DataKey) throws
}

/// The pushes: sign-ins that another device of the user may approve.
public protocol PushRecords {
  func insert(_ push: PushChallenge) throws
  func push(_ id: UUID) throws -> PushChallenge?
  /// The pushes of the user that were started or answered after `instant`, by age.
  func pushes(of userID: UUID, since instant: Timestamp) throws -> [PushChallenge]
  func update(_ push: PushChallenge) throws
  func removePushes(createdBefore instant: Timestamp, atMost count: Int) throws -> Int
  func removePushes(createdAfter instant: Timestamp, atMost count: Int) throws -> Int
}

/// The addresses of devices at push services.
public protocol PushAddressRecords {
  /// Inserts the address, or replaces the one of its device. Removes the address of another device with the same token.
  func save(_ address: PushAddress) throws
  /// The address with this hash of its token.
  func pushAddress(tokenHash: [UInt8]) throws -> PushAddress?
  func pushAddress(of deviceID: DeviceID) throws -> PushAddress?
  /// The addresses of the user's devices, by device.
  func pushAddresses(of userID: UUID) throws -> [PushAddress]
  /// Returns whether the device had an address.
  func removePushAddress(of deviceID: DeviceID) throws -> Bool
  /// Returns the number of removed addresses.
  func removePushAddresses(of userID: UUID) throws -> Int
}
