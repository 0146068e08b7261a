internal import ByteCoding
internal import Foundation

extension FactorRecords where Self: SecurityKeyRecords & TokenRecords {
  /// When the user's oldest second factor was set up: an authenticator, a token or a security key; `nil` without any.
  func secondFactorSince(of userID: UUID) throws -> Timestamp? {
    let ages =
      [try totp(of: userID)?.confirmedAt, try securityKeys(of: userID).first?.createdAt]
      + (try tokens(of: userID).map(\.assignedAt))
    return ages.compactMap(\.self).min()
  }

  /// Checks that `session` may change the methods of the second factor. If there is one, the session must have given
  /// it: trust that let it skip the second factor is not enough.
  ///
  /// - Throws: `.secondFactorRequired`
  func admitToFactors(_ session: LoginSession) throws {
    guard try hasGivenFactor(session) else { throw MFARefusal.secondFactorRequired }
  }

  /// Whether `session` has given the second factor of its user, or the user has none. Trust gives no factor.
  func hasGivenFactor(_ session: LoginSession) throws -> Bool {
    try session.methods.contains("mfa") || secondFactorSince(of: session.userID) == nil
  }
}

extension UnitOfWork {
  /// Makes all sessions wait for the second factor except `session`, once `user` has the first second factor. Otherwise
  /// they could be renewed for 30 days and change the account without it. Sessions that another device has approved wait,
  /// too: in an account without a second factor, that device had given no more than its key. An address for codes by
  /// e-mail is forgotten: any session could confirm it before, so it would be a second factor that no factor has admitted.
  ///
  /// The transaction excludes all other writers. A sign-in or a renewal at the same time is either complete, and then
  /// its session waits too, or sees the factor.
  ///
  /// - Parameter session: the session that has set the factor up and given it; `nil` if an operator has set it up.
  /// - Returns: the detail for the history's entry about the factor.
  func beginSecondFactor(of user: User, in session: LoginSession?) throws -> [String] {
    let held = try records.holdSessions(of: user.id, sparing: session?.id, at: now)
    let hadAddress = try records.email(of: user.id) != nil
    if hadAddress { try records.saveEmail(nil, of: user.id) }
    wakeSockets(of: user.id)
    return (held > 0 ? ["sessions=\(held)"] : []) + (hadAddress ? ["email=forgotten"] : [])
  }
}
