internal import ByteCoding

/// Forgets what is of no use any more, and reminds of what waits.
public struct Housekeeping: Sendable {
  let context: DomainContext

  public init(_ context: DomainContext) { self.context = context }

  /// How long notices can be told again.
  static let noticesKept = Duration.seconds(90 * 86400)

  /// How far the clocks of two backends on one database may be apart: what is over for one is not yet for the other.
  static let clockDifference = Duration.seconds(60)

  /// How long failed guesses are remembered when no others follow. Without this, an attacker that pauses after each
  /// lockout would never reach the hundred in a row that end guessing. The time is limited, since any client can
  /// guess at names that do not exist.
  static let failuresKept = Duration.seconds(90 * 86400)

  /// How long a network is one that a user was seen in.
  static let networksKept = Duration.seconds(90 * 86400)

  /// How long it can be told what became of a recovery.
  static let recoveriesKept = Duration.seconds(90 * 86400)

  /// Tells the recipients of recoveries that wait a second time, once half of the time is over: the first message may
  /// have been lost with a process or with a provider that was down. Of several backends on one database, one does.
  public func remind() async throws {
    let now = context.clock.now()
    let messages = try await context.store.write { [vault = context.vault] records in
      try records.recoveriesToRemind(at: now, atMost: 500).flatMap { recovery -> [OutgoingMessage] in
        var recovery = recovery
        recovery.remindedAt = now
        try records.update(recovery)
        guard let user = try records.user(recovery.userID) else { return [] }
        return recovery.notices(to: try Recipient.all(of: user, vault, in: records), vault, at: now)
      }
    }
    for message in messages { context.outbox.send(message) }
  }

  /// How many rows one transaction removes: others that write wait for that many, and not for all.
  static let portion = 5000

  /// Removes what is of no use any more, each kind by itself: one that fails keeps no other.
  ///
  /// - Throws: the first fault, after all kinds had their turn, or sooner if the task is cancelled.
  public func clean() async throws {
    let now = context.clock.now()
    var fault: (any Error)?
    for removal in Self.removals {
      try Task.checkCancellation()
      do {
        while try await context.store.write({ try removal($0, now) }) >= Self.portion { try Task.checkCancellation() }
      } catch {
        fault = fault ?? error
      }
    }
    if let fault { throw fault }
  }

  /// What removes one portion of one kind, and gives how many it has removed.
  private static let removals: [@Sendable (any Records, Timestamp) throws -> Int] = [
    { try $0.removeChallenges(expiredBefore: $1, atMost: portion) },
    // The counts of an hour are made of them.
    { try $0.removeCodes(createdBefore: $1.advanced(by: .seconds(-7200)), atMost: portion) },
    { try $0.removePushes(createdBefore: $1.advanced(by: .seconds(-7200)), atMost: portion) },
    { try $0.removeKeyChallenges(expiredBefore: $1, atMost: portion) },
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
  /// Writes down what the windows that are over have counted, of `count` at most, and gives how many they were.
  fileprivate func closeRefusalTallies(at now: Timestamp, atMost count: Int) throws -> Int {
    let tallies = try refusalTallies(begunBy: now.advanced(by: RefusalTally.window * -1), atMost: count)
    for tally in tallies { try close(tally, at: now) }
    return tallies.count
  }
}
