/// Why a gate does not start with some settings: told by those who start it, and found by those who only look.
public struct StartFault: Error, Sendable, Hashable {
  /// The key whose value is at fault, `tls.key_file`.
  public let key: String
  public let reason: String
  /// What to do about it.
  public let hint: String

  public init(_ key: String, _ reason: String, hint: String) {
    (self.key, self.reason, self.hint) = (key, reason, hint)
  }
}

extension StartFault: CustomStringConvertible {
  public var description: String { "\(key): \(reason)" }
}
