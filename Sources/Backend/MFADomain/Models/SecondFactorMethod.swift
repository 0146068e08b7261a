/// The ways to give a second factor.
public enum SecondFactorMethod: String, Sendable, Hashable, CaseIterable {
  case totp
  case email
  case backup = "backup_code"
  case securityKey = "webauthn"

  /// How tokens name it (RFC 8176).
  var reference: String {
    switch self {
    case .totp, .backup: "otp"
    case .email: "email"
    // The storage of the key is not attested, so it is neither `hwk` nor `swk`.
    case .securityKey: "pop"
    }
  }
}
