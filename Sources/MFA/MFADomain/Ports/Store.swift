public import ByteCoding
public import Foundation

/// The backend's memory.
///
/// A body runs in one transaction, alone among the writers: what it reads stays true until it has ended. It may run
/// more than once, so it does nothing but read and write records. What it throws leaves no trace; to refuse and still
/// keep what it wrote (a counted failure), it returns the refusal.
///
/// Removals of what is of no use any more (`remove…(…, atMost:)`) give how many they have removed: there may be more.
public protocol Store: Sendable {
  func read<Value: Sendable>(_ body: @escaping @Sendable (any Records) throws -> Value) async throws -> Value
  func write<Value: Sendable>(_ body: @escaping @Sendable (any Records) throws -> Value) async throws -> Value
  /// From now on entries of the history are made with these keys. `Vault.open` calls it.
  func authenticateHistory(with keys: HistoryKeys)
}

/// Why a store did not do what was asked. Nothing was changed, unless the commit itself is in doubt.
public struct StoreFault: Error, Sendable, Hashable {
  /// For the log.
  public let reason: String
  /// Whether it is the caller's load that is at fault, not the store.
  public let isOverload: Bool

  public init(reason: String, isOverload: Bool = false) {
    self.reason = reason
    self.isOverload = isOverload
  }

  /// The database exists, and has no tables of the backend.
  public static let noTables = StoreFault(reason: "it has no tables of the backend's")
  /// The deadline of the call has passed (`StoreDeadline`).
  public static let late = StoreFault(reason: "it did not answer in time", isOverload: true)
}

/// All records, within a transaction.
public typealias Records = UserRecords & DeviceRecords & ChallengeRecords & SessionRecords & CodeRecords
  & AttemptLimiterRecords
  & FactorRecords & TrustRecords & PushRecords & NoticeRecords & AuditRecords & KeyRecords & IdentityRecords
  & SecurityKeyRecords & RecoveryRecords & NetworkRecords

/// Which of the gate's identities have been used.
public protocol IdentityRecords {
  /// Uses up the identity whose number is `id`, and says whether that was its first use.
  ///
  /// Of two callers with the same number, in whatever process, one gets `true`.
  func spend(identity id: String, until end: Timestamp) throws -> Bool
  func removeIdentities(expiredBefore instant: Timestamp, atMost count: Int) throws -> Int
}

public protocol UserRecords {
  func user(named key: String) throws -> User?
  func user(_ id: UUID) throws -> User?
  func insert(_ user: User) throws
  func update(_ user: User) throws
  /// How many accounts the app instance of `binding` created.
  func countUsers(createdBy binding: Binding) throws -> Int
  /// All users after the one whose key is `key`, by key, at most `count`. The key is the one that is stored: of a
  /// name that an older version took it may be another one than the name has.
  func users(after key: String, atMost count: Int) throws -> [(key: String, user: User)]
  /// Since when users have the obligation that is called `word`: since `now` if it is another one than was kept.
  /// Forgets every other; `nil` forgets all.
  func datePolicy(_ word: String?, at now: Timestamp) throws -> Timestamp?
}

public protocol DeviceRecords {
  /// The device with this id, removed or not.
  func device(_ id: DeviceID) throws -> Device?
  /// Those of the user that are not removed, by age.
  func devices(of userID: UUID) throws -> [Device]
  /// Inserts it, or replaces the one with its id.
  func save(_ device: Device) throws
}

public protocol ChallengeRecords {
  func insert(_ challenge: DeviceChallenge) throws
  func challenge(_ id: UUID) throws -> DeviceChallenge?
  /// Uses it up and says whether it was there to use: open at `now`. Of two callers, one gets `true`.
  func spend(challenge id: UUID, at now: Timestamp) throws -> Bool
  func countFailure(ofChallenge id: UUID) throws
  func removeChallenges(of deviceID: DeviceID) throws
  func removeChallenges(expiredBefore instant: Timestamp, atMost count: Int) throws -> Int
}

public protocol SessionRecords {
  func session(_ id: UUID) throws -> LoginSession?
  func sessions(of userID: UUID) throws -> [LoginSession]
  func insert(_ session: LoginSession) throws
  func update(_ session: LoginSession) throws
  /// Ends those of the user that live at `now`, of `deviceID` alone if it is given, but for the newest `spared`;
  /// gives how many. It is one statement, however many there are.
  func revokeSessions(of userID: UUID, on deviceID: DeviceID?, sparing spared: Int, at now: Timestamp) throws -> Int
  func removeSessions(expiredBefore instant: Timestamp, atMost count: Int) throws -> Int
}

public protocol CodeRecords {
  func insert(_ code: OneTimeCode) throws
  /// The newest code for `subject`, open or not.
  func newestCode(for subject: String, _ channel: OneTimeCode.Channel) throws -> OneTimeCode?
  func update(_ code: OneTimeCode) throws
  /// When the code at `rank` was made, among those since `instant` from the newest (rank 1) back. The codes for the
  /// subject and the codes to the target are ranked apart; of two results the later one is given. `nil` if neither
  /// has as many.
  func timeOfCode(
    at rank: Int, for subject: String, to target: [UInt8], _ channel: OneTimeCode.Channel, since instant: Timestamp
  ) throws -> Timestamp?
  func removeCodes(createdBefore instant: Timestamp, atMost count: Int) throws -> Int
}

public protocol AttemptLimiterRecords {
  func limiter(on subject: String) throws -> AttemptLimiter?
  /// - Parameter account: the key of the name of the account that the guesses were at.
  func save(_ limiter: AttemptLimiter, on subject: String, account: String) throws
  func removeAttemptLimiters(onAccount account: String) throws
  func removeAttemptLimiters(idleSince instant: Timestamp, atMost count: Int) throws -> Int
}

public protocol FactorRecords {
  func totp(of userID: UUID) throws -> TOTPFactor?
  func save(_ factor: TOTPFactor) throws
  func removeTOTP(of userID: UUID) throws
  /// Replaces all backup codes of the user by these.
  func replaceBackupCodes(of userID: UUID, with hashes: [[UInt8]]) throws
  /// Whether it is one of the user's that is not used up.
  func hasBackupCode(_ hash: [UInt8], of userID: UUID) throws -> Bool
  /// Uses one up and says whether it was there, unused.
  func spendBackupCode(_ hash: [UInt8], of userID: UUID, at now: Timestamp) throws -> Bool
  /// Whether it is one of the user's that was used up.
  func isSpentBackupCode(_ hash: [UInt8], of userID: UUID) throws -> Bool
  func countBackupCodes(of userID: UUID) throws -> Int
  func email(of userID: UUID) throws -> Sealed?
  func saveEmail(_ email: Sealed?, of userID: UUID) throws
}

public protocol SecurityKeyRecords {
  func insert(_ key: SecurityKey) throws
  /// Writes what can change: the count, the backup state, the name and the last use.
  func update(_ key: SecurityKey) throws
  /// The one with this credential, whosever it is.
  func securityKey(_ credentialID: CredentialID) throws -> SecurityKey?
  /// The user's, by age.
  func securityKeys(of userID: UUID) throws -> [SecurityKey]
  func removeSecurityKey(_ id: UUID, of userID: UUID) throws -> Bool
  func removeSecurityKeys(of userID: UUID) throws
  /// Keeps it in place of the older one that its session has for its ceremony.
  func save(_ challenge: KeyChallenge) throws
  func keyChallenge(_ ceremony: KeyChallenge.Ceremony, of sessionID: UUID) throws -> KeyChallenge?
  /// Uses it up and says whether it was there to use: open at `now`, and the newest. Of two callers, one gets `true`.
  func spend(_ challenge: KeyChallenge, at now: Timestamp) throws -> Bool
  func removeKeyChallenges(expiredBefore instant: Timestamp, atMost count: Int) throws -> Int
}

public protocol TrustRecords {
  /// Inserts it with the next id, which it gives.
  func insert(_ device: TrustedDevice) throws -> Int64
  func trustedDevices(of userID: UUID, at now: Timestamp) throws -> [TrustedDevice]
  func update(_ device: TrustedDevice) throws
  func removeTrustedDevice(_ id: Int64, of userID: UUID) throws -> Bool
  func removeTrustedDevices(of userID: UUID, boundTo binding: Binding?) throws
  func removeTrustedDevices(expiredBefore instant: Timestamp, atMost count: Int) throws -> Int
}

public protocol NoticeRecords {
  /// Appends it with the user's next number, which it gives.
  func append(_ kind: Notice.Kind, to userID: UUID, concerning: String?, at now: Timestamp) throws -> Int64
  /// The number of the user's newest; 0 if there is none.
  func lastNotice(of userID: UUID) throws -> Int64
  func notices(of userID: UUID, after sequence: Int64, atMost count: Int) throws -> [Notice]
  func removeNotices(before instant: Timestamp, atMost count: Int) throws -> Int
}

public protocol AuditRecords {
  /// What new entries are authenticated with; `nil` until the vault is open.
  var historyKeys: HistoryKeys? { get }
  func lastAuditEntry() throws -> (sequence: Int64, hash: [UInt8], keyNumber: UInt32?)?
  func append(_ entry: AuditEntry, hash: [UInt8]) throws
  /// Entries with their stored hashes, by number.
  func auditEntries(after sequence: Int64, atMost count: Int) throws -> [(entry: AuditEntry, hash: [UInt8])]
  /// Those of an account, or of all, the newest first.
  func auditEntries(before sequence: Int64, account: String?, atMost count: Int) throws -> [AuditEntry]
  /// Whether there is an account whose name has this key.
  func isAccount(_ key: String) throws -> Bool
  func refusalTally(_ kind: RefusalTally.Kind) throws -> RefusalTally?
  /// Those of windows that began at `instant` or before, the oldest first.
  func refusalTallies(begunBy instant: Timestamp, atMost count: Int) throws -> [RefusalTally]
  /// Inserts it, or replaces the one of its kind.
  func save(_ tally: RefusalTally) throws
  /// How many refusals of these kinds the windows that began after `instant` have counted at an account.
  func countRefusals(_ events: [AuditEvent], at account: String, since instant: Timestamp) throws -> Int
  func removeRefusalTally(_ kind: RefusalTally.Kind) throws
}

/// Where users have completed sign-ins from. Empty unless a policy asks for it.
public protocol NetworkRecords {
  /// Whether the user has from `network`: by the app instance of `binding`, or by any.
  func isKnown(network: String, of userID: UUID, by binding: Binding?) throws -> Bool
  func saw(network: String, of userID: UUID, by binding: Binding, at now: Timestamp) throws
  func removeNetworks(of userID: UUID) throws
  func removeNetworks(unseenSince instant: Timestamp, atMost count: Int) throws -> Int
}

public protocol RecoveryRecords {
  /// - Throws: if the user has an open one.
  func insert(_ recovery: Recovery) throws
  func recovery(_ id: UUID) throws -> Recovery?
  /// The user's open recovery. Its time may be over.
  func unendedRecovery(of userID: UUID) throws -> Recovery?
  /// Those that are open at `now`, with their users, by the keys of the names after `key`.
  func openRecoveries(after key: String, at now: Timestamp, atMost count: Int) throws -> [(User, Recovery)]
  /// Waiting recoveries, half of whose time is over at `now` and that have had no reminder.
  func recoveriesToRemind(at now: Timestamp, atMost count: Int) throws -> [Recovery]
  func update(_ recovery: Recovery) throws
  func removeRecoveries(expiredBefore instant: Timestamp, atMost count: Int) throws -> Int
}

public protocol KeyRecords {
  func dataKeys() throws -> [DataKey]
  func save(_ key: DataKey) throws
}

public protocol PushRecords {
  func insert(_ push: PushChallenge) throws
  func push(_ id: UUID) throws -> PushChallenge?
  /// Those of the user that began or were answered after `instant`, by age.
  func pushes(of userID: UUID, since instant: Timestamp) throws -> [PushChallenge]
  func update(_ push: PushChallenge) throws
  func removePushes(createdBefore instant: Timestamp, atMost count: Int) throws -> Int
}
