/// A variable that names a proxy has a value that cannot be used. Its texts have no part of a password.
public struct ProxyVariableError: Error, Sendable, Hashable {
  /// The variable as it is set, such as `https_proxy`.
  public let variable: String
  /// What is wrong with its value.
  public let reason: String
  /// What to write instead.
  public var hint: String {
    variable.lowercased() == NoProxyList.variable
      ? "write \(variable)=NAME,ADDRESS,ADDRESS/BITS, such as localhost,.example.com,10.0.0.0/8"
      : "write \(variable)=http://HOST:PORT, with credentials http://USER:PASSWORD@HOST:PORT"
  }

  /// Creates an error.
  public init(variable: String, reason: String) {
    self.variable = variable
    self.reason = reason
  }
}

extension ProxyVariableError: CustomStringConvertible {
  /// The variable, the reason and the hint in one sentence.
  public var description: String { "\(variable): \(reason): \(hint)" }
}
