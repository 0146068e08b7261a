internal import ByteCoding

/// Forgets what is of no use any more, and reminds of what waits.
public struct Housekeeping: Sendable {
  let premises: Premises

  public init(_ premises: Premises) { self.premises = premises }

  /// How long notices can be told again.
  static let noticesKept = Duration.seconds(90 * 86400)

  /// How far the clocks of two backends on one database may be apart: what is over for one is not yet for the other.
  static let clockDifference = Duration.seconds(60)

  /// How long failed guesses are remembered when no others follow: or whoever pauses after each lock would never get to
  /// the hundred in a row that end guessing. Not for ever, since anybody can guess at names that do not exist.
  static let failuresKept = Duration.seconds(90 * 86400)

  /// How long a network is one that a user was seen in.
  static let networksKept = Duration.seconds(90 * 86400)

  /// How long it can be told what became of a recovery.
  static let recoveriesKept = Duration.seconds(90 * 86400)

  /// Tells the recipients of recoveries that wait a second time, once half of the time is over: the first message may
  /// have been lost with a process or with a provider that was down. Of several backends on one database, one does.
  public func remind() async throws {
    let now = premises.clock.now()
    let messages = try await premises.store.write { [vault = premises.vault] records in
      try records.recoveriesToRemind(at: now, atMost: 500).flatMap { recovery -> [OutgoingMessage] in
        var recovery = recovery
        recovery.remindedAt = now
        try records.update(recovery)
        guard let user = try records.user(recovery.userID) else { return [] }
        return recovery.notices(to: try Recipient.all(of: user, vault, in: records), vault, at: now)
      }
    }
    for message in messages { premises.outbox.send(message) }
  }

  public func clean() async throws {
    let now = premises.clock.now()
    try await premises.store.write { records in
      try records.removeChallenges(expiredBefore: now)
      // The counts of an hour are made of them.
      try records.removeCodes(createdBefore: now.advanced(by: .seconds(-7200)))
      try records.removePushes(createdBefore: now.advanced(by: .seconds(-7200)))
      try records.removeKeyChallenges(expiredBefore: now)
      try records.removeSessions(expiredBefore: now)
      try records.removeTrustedDevices(expiredBefore: now)
      try records.removeBrakes(idleSince: now.advanced(by: Self.failuresKept * -1))
      try records.removeIdentities(expiredBefore: now.advanced(by: Self.clockDifference * -1))
      try records.removeNotices(before: now.advanced(by: Self.noticesKept * -1))
      try records.removeNetworks(unseenSince: now.advanced(by: Self.networksKept * -1))
      try records.removeRecoveries(expiredBefore: now.advanced(by: Self.recoveriesKept * -1))
      try records.closeRefusalTallies(at: now)
    }
  }
}

extension AuditRecords {
  /// Writes down what the windows that are over have counted.
  fileprivate func closeRefusalTallies(at now: Timestamp) throws {
    let end = now.advanced(by: RefusalTally.window * -1)
    while true {
      let tallies = try refusalTallies(begunBy: end, atMost: 500)
      for tally in tallies { try close(tally, at: now) }
      if tallies.count < 500 { return }
    }
  }
}
