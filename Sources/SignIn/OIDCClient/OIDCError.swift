/// Why a provider cannot be used.
public enum OIDCError: Error, Sendable, Hashable {
  /// A document is not what it should be: which.
  case malformed(String)
}
