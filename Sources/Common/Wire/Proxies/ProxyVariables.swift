#if canImport(Glibc)
  internal import Glibc
#else
  internal import Darwin
#endif

/// The environment variables that choose a proxy for HTTP requests, read as curl reads them.
///
/// For `https` these are `https_proxy`, `HTTPS_PROXY`, `all_proxy` and `ALL_PROXY`, in this order; for `http` they are
/// `http_proxy`, `all_proxy` and `ALL_PROXY`. `HTTP_PROXY` is not read: a web server that runs a program by CGI sets it
/// from a client's `Proxy` field. `no_proxy` or `NO_PROXY` lists the hosts that are reached without a proxy. An empty
/// variable is not set. This machine is never reached through a proxy, whatever the variables say.
///
/// A faulty value fails the requests that would use it, and no others.
public struct ProxyVariables: Sendable, Hashable {
  /// The scheme of a request.
  public enum Scheme: String, Sendable, Hashable {
    case http, https

    /// The variables that may name its proxy, the first one first.
    var variables: [String] {
      (self == .https ? ["https_proxy", "HTTPS_PROXY"] : ["http_proxy"]) + ["all_proxy", "ALL_PROXY"]
    }
  }

  private typealias Choice = Result<ForwardProxy?, ProxyVariableError>

  private let plain: Choice
  private let secure: Choice
  private let exceptions: Result<NoProxyList, ProxyVariableError>
  /// A variable that is set and not read; `nil` if there is none.
  private let ignored: String?

  /// The variables of this process, as they were at the first use.
  public static let ofProcess = ProxyVariables { name in getenv(name).map { String(cString: $0) } }
  /// No proxy.
  public static let none = ProxyVariables { _ in nil }

  /// - Parameter environment: Returns the value of a variable; `nil` if it is not set.
  public init(_ environment: (String) -> String?) {
    func value(_ names: [String]) -> (name: String, value: String)? {
      for name in names { if let value = environment(name), !value.isEmpty { return (name, value) } }
      return nil
    }
    func choice(_ scheme: Scheme) -> Choice {
      guard let (name, value) = value(scheme.variables) else { return .success(nil) }
      return Result { () throws(ProxyVariableError) in try ForwardProxy(value, of: name) }
    }
    (plain, secure) = (choice(.http), choice(.https))
    exceptions =
      value([NoProxyList.variable, "NO_PROXY"]).map { name, value in
        Result { () throws(ProxyVariableError) in try NoProxyList(value, of: name) }
      } ?? .success(NoProxyList())
    ignored = value(["HTTP_PROXY"]) != nil && plain == .success(nil) ? "HTTP_PROXY" : nil
  }

  /// Returns the proxy for a request; `nil` if the server is reached without one.
  ///
  /// - Parameter host: As in the URL, with or without the brackets of an IPv6 address.
  /// - Throws: `ProxyVariableError` if a variable on which the answer depends is faulty.
  public func proxy(
    for scheme: Scheme, host: String, port: UInt16
  ) throws(ProxyVariableError) -> ForwardProxy? {
    let host = HostAddress(host)
    guard !host.isLoopback else { return nil }
    let choice = scheme == .https ? secure : plain
    if case .success(nil) = choice { return nil }
    guard try !exceptions.get().contains(host, port: port) else { return nil }
    return try choice.get()
  }

  /// How a server is reached, for people; `nil` if no variable chooses a proxy for its scheme.
  ///
  /// - Throws: `ProxyVariableError`, as `proxy`.
  public func summary(
    for scheme: Scheme, host: String, port: UInt16
  ) throws(ProxyVariableError) -> String? {
    if let proxy = try proxy(for: scheme, host: host, port: port) { return "reached through the proxy \(proxy)" }
    if case .success(nil) = scheme == .https ? secure : plain {
      guard scheme == .http, let ignored, !HostAddress(host).isLoopback else { return nil }
      return "reached directly: \(ignored) is not read, as in curl; write http_proxy"
    }
    return HostAddress(host).isLoopback
      ? "reached directly: this machine is never reached through a proxy" : "reached directly (no_proxy)"
  }
}
