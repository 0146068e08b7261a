internal import ByteCoding

extension Administration {
  /// The recoveries that are open, with the accounts that they are of, after the one of `name`, by the keys of the
  /// names.
  public func recoveries(
    after name: Username?, atMost count: Int, by actor: Actor
  ) async throws -> [(user: User, recovery: Recovery)] {
    let now = context.clock.now()
    return try await context.store.read { records in
      try records.admit(actor, context.policy, at: now)
      return try records.openRecoveries(after: name?.key ?? "", at: now, atMost: max(1, min(count, 200)))
        .map { (user: $0, recovery: $1) }
    }
  }

  /// Stops the recovery of an account.
  ///
  /// - Throws: `.notFound` if none is open.
  public func cancelRecovery(_ username: Username, by actor: Actor) async throws {
    let now = context.clock.now()
    let userID = try await context.store.write { [policy = context.policy] records in
      try records.admit(actor, policy, at: now)
      guard let user = try records.user(named: username),
        try records.cancelRecovery(of: user, .operator, actor.name, actor.requestID, at: now)
      else { throw MFARefusal.notFound }
      return user.id
    }
    context.hub.notify(for: userID)
  }
}
