internal import ByteCoding
internal import Foundation

extension FactorRecords where Self: SecurityKeyRecords {
  /// Since when the user has a second factor: an authenticator or a security key; `nil` without either.
  func secondFactorSince(of userID: UUID) throws -> Timestamp? {
    let ages = [try totp(of: userID)?.confirmedAt, try securityKeys(of: userID).first?.createdAt]
    return ages.compactMap(\.self).min()
  }

  /// Whether `session` may change what the second factor is given by: where there is one, it has given it. Trust that
  /// spared it the second factor does not do.
  ///
  /// - Throws: `.secondFactorRequired`
  func admitToFactors(_ session: LoginSession) throws {
    guard try session.methods.contains("mfa") || secondFactorSince(of: session.userID) == nil else {
      throw MFARefusal.secondFactorRequired
    }
  }
}
