internal import ByteCoding
public import Foundation

/// Removes records that are of no use any more, and sends reminders of waiting recoveries.
public struct RecordMaintenance: Sendable {
  let context: DomainContext

  public init(_ context: DomainContext) { self.context = context }

  /// How long notices are kept.
  static let noticesKept = Duration.seconds(90 * 86400)

  /// The greatest difference between the clocks of two backends on one database.
  static let clockDifference = Duration.seconds(60)

  /// How long failed guesses are remembered when no others follow. Without this, an attacker that pauses after each
  /// lockout would never reach the hundred in a row that end guessing. The time is limited, since any client can
  /// guess at names that do not exist.
  static let failuresKept = Duration.seconds(90 * 86400)

  /// How long a network of a user is kept after the last sign-in from it.
  static let networksKept = Duration.seconds(90 * 86400)

  /// How long a recovery is kept after its time is over.
  static let recoveriesKept = Duration.seconds(90 * 86400)

  /// A number or an address of an account that cannot be opened, so that no reminder is sent to it.
  public struct UnreadableRecipient: Sendable {
    public let userID: UUID
    /// Why, for the log.
    public let reason: String
  }

  /// Sends the message about each waiting recovery a second time after half of its waiting time: the first message may
  /// have been lost with a process, or at a provider that was down. Of several backends on one database, one sends it.
  ///
  /// - Parameter didFail: called once for each recipient that is left out. The others get the message.
  public func remind(didFail: @Sendable (UnreadableRecipient) -> Void = { _ in }) async throws {
    let unreadable = try await context.write(by: NamedActor.backend) { work -> [UnreadableRecipient] in
      var unreadable: [UnreadableRecipient] = []
      for var recovery in try work.records.recoveriesToRemind(at: work.now, atMost: 500) {
        recovery.remindedAt = work.now
        try work.records.update(recovery)
        guard let user = try work.records.user(recovery.userID) else { continue }
        // One damaged value must not prevent the messages of all other accounts.
        let recipients = try work.recipients(of: user) { error in
          unreadable.append(UnreadableRecipient(userID: user.id, reason: "\(error)"))
        }
        work.send(recovery, of: user, to: recipients)
      }
      return unreadable
    }
    for recipient in unreadable { didFail(recipient) }
  }

  /// The number of rows that one transaction removes. Other writers wait for that many rows at most.
  static let portion = 5000

  /// Removes expired records, each kind on its own: an error at one kind does not stop the others.
  ///
  /// - Throws: the first error, after all kinds were tried; `CancellationError` if the task is cancelled.
  public func clean() async throws { try await carryOut(Self.removals) }

  /// Removes the codes and pushes, and closes the tallies, of a clock that ran ahead and was set back. They would count
  /// until their times are reached: users would get no code until then.
  ///
  /// Call it only while this machine's clock is known to be right. For a clock that is behind, the records of all other
  /// backends are of the future.
  ///
  /// - Throws: as `clean()`.
  public func removeFuture() async throws { try await carryOut(Self.removalsOfFuture) }

  private func carryOut(_ removals: [Removal]) async throws {
    let (store, clock) = (context.store, context.clock)
    var fault: (any Error)?
    for removal in removals {
      try Task.checkCancellation()
      do {
        // Each portion reads the clock: a record that was made after the first portion is not of the future.
        while try await store.write({ try removal($0, clock.now()) }) >= Self.portion { try Task.checkCancellation() }
      } catch {
        fault = fault ?? error
      }
    }
    if let fault { throw fault }
  }

  /// Removes one portion of one kind at a time, and returns the number of removed rows.
  private typealias Removal = @Sendable (any Records, Timestamp) throws -> Int

  private static let removalsOfFuture: [Removal] = [
    { try $0.removeCodes(createdAfter: $1.advanced(by: clockDifference), atMost: portion) },
    { try $0.removePushes(createdAfter: $1.advanced(by: clockDifference), atMost: portion) },
    { try $0.closeRefusalTallies(aheadOf: $1, atMost: portion) },
  ]

  private static let removals: [Removal] = [
    { try $0.removeChallenges(expiredBefore: $1, atMost: portion) },
    // The limits per hour count these rows.
    { try $0.removeCodes(createdBefore: $1.advanced(by: .seconds(-7200)), atMost: portion) },
    { try $0.removePushes(createdBefore: $1.advanced(by: .seconds(-7200)), atMost: portion) },
    { try $0.removeKeyChallenges(expiredBefore: $1, atMost: portion) },
    { try $0.removeAppOffers(expiredBefore: $1, atMost: portion) },
    { try $0.removeFederationChallenges(expiredBefore: $1, atMost: portion) },
    { try $0.removeIdempotentCalls(startedBefore: $1.advanced(by: IdempotentCall.lifetime * -1), atMost: portion) },
    { try $0.removeSessions(expiredBefore: $1, atMost: portion) },
    { try $0.removeTrustedDevices(expiredBefore: $1, atMost: portion) },
    { try $0.removeAttemptLimiters(idleSince: $1.advanced(by: failuresKept * -1), atMost: portion) },
    { try $0.removeIdentities(expiredBefore: $1.advanced(by: clockDifference * -1), atMost: portion) },
    { try $0.removeNotices(before: $1.advanced(by: noticesKept * -1), atMost: portion) },
    { try $0.removeNetworks(unseenSince: $1.advanced(by: networksKept * -1), atMost: portion) },
    { try $0.removeRecoveries(expiredBefore: $1.advanced(by: recoveriesKept * -1), atMost: portion) },
    { try $0.closeRefusalTallies(at: $1, atMost: portion) },
  ]
}

extension AuditRecords {
  /// Closes the tallies of at most `count` windows that are over, and returns their number.
  fileprivate func closeRefusalTallies(at now: Timestamp, atMost count: Int) throws -> Int {
    let tallies = try refusalTallies(begunBy: now.advanced(by: RefusalTally.window * -1), atMost: count)
    for tally in tallies { try close(tally, at: now) }
    return tallies.count
  }

  /// Closes the tallies of at most `count` windows that begin in the future, and returns their number.
  fileprivate func closeRefusalTallies(aheadOf now: Timestamp, atMost count: Int) throws -> Int {
    let tallies = try refusalTallies(begunAfter: now.advanced(by: RecordMaintenance.clockDifference), atMost: count)
    for tally in tallies { try close(tally, at: now) }
    return tallies.count
  }
}
