/// The relying party of security keys (Web Authentication Level 3): this installation, under a domain.
public struct RelyingParty: Sendable, Hashable {
  /// Whether the key must verify the person by a PIN or a fingerprint, in addition to the touch.
  public enum UserVerification: String, Sendable, Hashable, CaseIterable {
    /// A response without it is refused.
    case required
    /// Requested from keys that support it; a response without it is accepted.
    case preferred
    case discouraged
  }

  /// A domain, as `example.com`. Keys are bound to it: another one makes all of them worthless.
  public let id: String
  /// The accepted origins of responses, in the form of clients: `https://login.example.com`.
  public let origins: [String]
  public let userVerification: UserVerification

  public init(id: String, origins: [String], userVerification: UserVerification = .preferred) {
    self.id = id
    self.origins = origins
    self.userVerification = userVerification
  }
}
