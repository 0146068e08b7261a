public import MFAWire

/// The security keys that a user plugs in or holds to the device (Web Authentication Level 3).
///
/// The server decides whether a proof is right. A call returns when the user has touched a key, or has given up.
public protocol SecurityKeyService: Sendable {
  /// Makes a credential on a security key.
  ///
  /// - Throws: `.knownKey` for a key that `options` exclude; `.cancelled`; `.other`.
  func register(_ options: CredentialCreationOptions) async throws(SecurityKeyError) -> RegistrationRequest
  /// Signs the challenge of `options` with a credential that they allow. The trust fields of the result are absent.
  ///
  /// - Throws: `.unknownKey` if no security key at hand has such a credential; `.cancelled`; `.other`.
  func prove(_ options: CredentialRequestOptions) async throws(SecurityKeyError) -> AuthenticationRequest
}

/// Why a security key gave no answer, as a text for the user.
public enum SecurityKeyError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The user has given up, or the time was over.
  case cancelled
  /// The key belongs to the account already.
  case knownKey
  /// The key has no credential of the account.
  case unknownKey
  /// Another reason.
  case other(String)

  public var description: String {
    switch self {
    case .cancelled: "The security key was not used."
    case .knownKey: "This security key is registered already."
    case .unknownKey: "No security key of this account was found."
    case .other(let reason): reason
    }
  }
}
