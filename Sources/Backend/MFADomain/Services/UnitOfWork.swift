internal import ByteCoding
internal import Foundation

/// One transaction of the store with everything that an operation uses in it: the records, the initiator, the time,
/// the policy, and the messages and notices that go out after the commit.
///
/// `DomainContext.write(by:at:_:)` and `DomainContext.read(by:at:_:)` create it and pass it to a body:
///
/// - **Reads:** `records` show the state of the transaction, its own writes included. What a body of `write` has read
///   stays true until the commit, unless it excludes no more than rows (`WriteExclusion`).
/// - **Time:** `now` is the time of the operation, read before the transaction waits for its turn.
/// - **After the commit:** queued messages are handed to the outbox in their order, then the open sockets of each
///   queued user are notified once. A failed commit sends nothing.
/// - **Retry:** the store may run a body more than once. Each run has its own unit of work, and only what the committed
///   run has queued goes out.
/// - **Errors:** an error of the body rolls the transaction back, and nothing goes out.
/// - **Recorded refusals:** `RecordedRefusal` is the exception. All that was written before it is committed (a counted
///   attempt, an entry of the history), what was queued goes out, and the operation throws the refusal.
///
/// An instance is valid until its body returns.
final class UnitOfWork<Initiator: HistoryActor> {
  /// The records of the transaction. Those of `read` refuse writes.
  let records: any Records
  /// The client or operator that the operation runs for. The history names it.
  let initiator: Initiator
  /// The time of the operation.
  let now: Timestamp
  let context: DomainContext
  fileprivate var outgoing = Outgoing()

  fileprivate init(_ records: any Records, by initiator: Initiator, at now: Timestamp, in context: DomainContext) {
    self.records = records
    self.initiator = initiator
    self.now = now
    self.context = context
  }

  var policy: Policy { context.policy }
  var vault: Vault { context.vault }

  /// Queues a message, which goes out after the commit.
  func send(_ message: OutgoingMessage) { outgoing.messages.append(message) }

  /// Appends a notice to the user's notices, and notifies the user's open sockets after the commit. A push notification of
  /// it goes to the devices that have a full session now: write the notice of a change that holds or ends sessions, or
  /// removes devices, before these.
  ///
  /// - Parameter concerning: the id of the device, session, trusted device, security key, authenticator or recovery;
  ///   `nil` for the account as a whole.
  func notify(_ userID: UUID, of kind: Notice.Kind, concerning: String? = nil) throws {
    let sequence = try records.append(kind, to: userID, concerning: concerning, at: now)
    if policy.pushesNotices, kind.isPushed {
      var pushed = outgoing.pushedNotices[userID] ?? PushedNotices(sequence: sequence)
      pushed.sequence = sequence
      for (address, _) in try addressedDevices(of: userID) { pushed.add(address) }
      outgoing.pushedNotices[userID] = pushed
    }
    wakeSockets(of: userID)
  }

  /// Lets the user's open sockets read again after the commit, for a change that is not a notice: a push, a session.
  func wakeSockets(of userID: UUID) {
    if !outgoing.users.contains(userID) { outgoing.users.append(userID) }
  }

  /// Queues a push notification, which goes out after the commit.
  func send(_ notification: PushNotification) { outgoing.notifications.append(notification) }

  /// Appends an entry to the history.
  ///
  /// - Parameter account: the key of the account's name; `nil` if the entry concerns no account.
  func note(_ event: AuditEvent, account: String?, _ detail: [String] = []) throws {
    try records.note(event, by: initiator, account: account, detail, at: now)
  }

  /// Appends an entry about the account of `user` to the history.
  func note(_ event: AuditEvent, of user: User, _ detail: [String] = []) throws {
    try note(event, account: user.username.key, detail)
  }
}

/// A refusal that leaves something behind: thrown from the body of a unit of work, it commits what was written.
struct RecordedRefusal: Error, Sendable, Hashable {
  let refusal: MFARefusal

  init(_ refusal: MFARefusal) { self.refusal = refusal }
}

/// What a unit of work has queued until its commit.
private struct Outgoing: Sendable {
  var messages: [OutgoingMessage] = []
  var users: [UUID] = []
  var notifications: [PushNotification] = []
  /// The notices of each user that are push notifications as well.
  var pushedNotices: [UUID: PushedNotices] = [:]
}

/// The end of a transaction: what it came to, and what goes out after it.
private struct Completion<Value: Sendable>: Sendable {
  let result: Result<Value, MFARefusal>
  let outgoing: Outgoing
}

extension DomainContext {
  /// Runs `body` in one transaction that may write, commits it, and then sends what `body` has queued.
  ///
  /// - Parameters:
  ///   - time: the time of the operation; `nil` to read the clock. An operation of several transactions passes the same
  ///     time to all of them.
  ///   - others: what the transaction excludes. `.rows` needs a reason: the article on the design has the table of what
  ///     guards which rule.
  /// - Throws: the error of `body`; the refusal of a `RecordedRefusal`, after the commit; `IdentityUsedBefore`;
  ///   `MFAStoreError`.
  func write<Initiator: HistoryActor, Value: Sendable>(
    by initiator: Initiator, at time: Timestamp? = nil, excluding others: WriteExclusion = .writers,
    _ body: @escaping @Sendable (UnitOfWork<Initiator>) throws -> Value
  ) async throws -> Value {
    let now = time ?? clock.now()
    return try finish(await store.write(excluding: others) { try run(body, on: $0, by: initiator, at: now) })
  }

  /// Runs `body` in one transaction that only reads.
  ///
  /// - Parameter time: as in `write(by:at:_:)`.
  /// - Throws: the error of `body`; `MFAStoreError`.
  func read<Initiator: HistoryActor, Value: Sendable>(
    by initiator: Initiator, at time: Timestamp? = nil,
    _ body: @escaping @Sendable (UnitOfWork<Initiator>) throws -> Value
  ) async throws -> Value {
    let now = time ?? clock.now()
    return try finish(await store.read { try run(body, on: $0, by: initiator, at: now) })
  }

  private func run<Initiator: HistoryActor, Value: Sendable>(
    _ body: (UnitOfWork<Initiator>) throws -> Value, on records: any Records, by initiator: Initiator,
    at now: Timestamp
  ) throws -> Completion<Value> {
    let work = UnitOfWork(records, by: initiator, at: now, in: self)
    do {
      let value = try body(work)
      try work.pushNotices(work.outgoing.pushedNotices)
      return Completion(result: .success(value), outgoing: work.outgoing)
    } catch let recorded as RecordedRefusal {
      try work.pushNotices(work.outgoing.pushedNotices)
      return Completion(result: .failure(recorded.refusal), outgoing: work.outgoing)
    }
  }

  private func finish<Value: Sendable>(_ completion: Completion<Value>) throws -> Value {
    for message in completion.outgoing.messages { outbox.send(message) }
    for userID in completion.outgoing.users { hub.notify(for: userID) }
    if let pushOutbox { for notification in completion.outgoing.notifications { pushOutbox.send(notification) } }
    return try completion.result.get()
  }
}
