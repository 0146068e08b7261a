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
