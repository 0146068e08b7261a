/// A configuration fault that prevents the gate's start. Both `run` and `check` report it.
public struct StartError: Error, Sendable, Hashable {
  /// The key with the faulty value, for example `tls.key_file`.
  public let key: String
  public let reason: String
  /// What the operator can do about it.
  public let hint: String

  public init(_ key: String, _ reason: String, hint: String) {
    (self.key, self.reason, self.hint) = (key, reason, hint)
  }
}

extension StartError: CustomStringConvertible {
  public var description: String { "\(key): \(reason)" }
}
