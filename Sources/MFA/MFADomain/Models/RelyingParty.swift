/// The relying party of security keys (Web Authentication Level 3): this installation, under a domain.
public struct RelyingParty: Sendable, Hashable {
  /// Whether the person has to be recognised by the key, by a PIN or a finger, beside touching it.
  public enum UserVerification: String, Sendable, Hashable, CaseIterable {
    /// A response without it is refused.
    case required
    /// Asked of keys that can; one without it is taken.
    case preferred
    case discouraged
  }

  /// A domain, as `example.com`. Keys are bound to it: another one makes all of them worthless.
  public let id: String
  /// Where responses may come from, as clients write it: `https://login.example.com`.
  public let origins: [String]
  public let userVerification: UserVerification

  public init(id: String, origins: [String], userVerification: UserVerification = .preferred) {
    self.id = id
    self.origins = origins
    self.userVerification = userVerification
  }
}
