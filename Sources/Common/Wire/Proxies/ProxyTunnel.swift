/// The request for a tunnel to a server, and the answer of the proxy (RFC 9110 section 9.3.6).
///
/// The client then speaks first in the tunnel, as in TLS: a byte of the proxy after its answer is a fault.
public struct ProxyTunnel: Sendable {
  /// The largest head of an answer with all interim answers before it, in bytes.
  public static let longestAnswer = 16 << 10

  /// The bytes of the request.
  public let request: [UInt8]
  private let proxy: ForwardProxy
  private var statusLine: [UInt8] = []
  private var isStatusLine = true
  private var lineLength = 0
  private var received = 0
  private var isOpen = false

  /// - Parameters:
  ///   - host: A name or an address, with or without the brackets of an IPv6 address.
  ///   - port: The port of the server.
  /// - Throws: `ProxyTunnelError.target` if `host` has bytes that no name or address has.
  public init(to host: String, port: UInt16, through proxy: ForwardProxy) throws(ProxyTunnelError) {
    guard !host.isEmpty, host.utf8.allSatisfy({ (0x21...0x7E).contains($0) && !"@/?#".utf8.contains($0) }) else {
      throw ProxyTunnelError(proxy: proxy, fault: .target)
    }
    let authority = "\(host.contains(":") && !host.hasPrefix("[") ? "[\(host)]" : host):\(port)"
    let credentials = proxy.authorization.map { "Proxy-Authorization: \($0)\r\n" } ?? ""
    request = Array("CONNECT \(authority) HTTP/1.1\r\nHost: \(authority)\r\n\(credentials)\r\n".utf8)
    self.proxy = proxy
  }

  /// Takes bytes of the proxy, in any pieces.
  ///
  /// - Returns: Whether the tunnel is open.
  /// - Throws: `ProxyTunnelError` if the proxy refuses, or does not answer as HTTP asks.
  public mutating func receive(_ bytes: some Sequence<UInt8>) throws(ProxyTunnelError) -> Bool {
    for byte in bytes {
      guard !isOpen else { throw ProxyTunnelError(proxy: proxy, fault: .earlyBytes) }
      received += 1
      guard received <= Self.longestAnswer else { throw ProxyTunnelError(proxy: proxy, fault: .tooLong) }
      isOpen = try take(byte)
    }
    return isOpen
  }

  /// The text for a connection to the proxy that failed because of `reason`.
  public func proxyFailed(_ reason: String) -> String { "the proxy \(proxy): \(reason)" }

  /// Returns whether `byte` ends the head of a successful answer.
  private mutating func take(_ byte: UInt8) throws(ProxyTunnelError) -> Bool {
    guard byte == UInt8(ascii: "\n") else {
      if isStatusLine { statusLine.append(byte) }
      if byte != UInt8(ascii: "\r") { lineLength += 1 }
      // Another protocol is recognized at once, not when 16 KiB of it have arrived.
      if isStatusLine, !"HTTP/1.".utf8.starts(with: statusLine.prefix(7)) { throw malformed }
      return false
    }
    defer { lineLength = 0 }
    if isStatusLine {
      _ = try status()
      isStatusLine = false
      return false
    }
    guard lineLength == 0 else { return false }
    let status = try status()
    guard status >= 200 else {
      // An interim answer, which another one follows.
      (statusLine, isStatusLine) = ([], true)
      return false
    }
    guard status < 300 else { throw ProxyTunnelError(proxy: proxy, fault: .refused(status: status)) }
    return true
  }

  /// `HTTP/1.x NNN` and the end of the line or a blank.
  private func status() throws(ProxyTunnelError) -> Int {
    let digits = statusLine.dropFirst(9).prefix(3)
    guard statusLine.count >= 12, ForwardProxy.isDigit(statusLine[7]), statusLine[8] == 0x20,
      digits.allSatisfy(ForwardProxy.isDigit), [0x20, 0x0D, nil].contains(statusLine.dropFirst(12).first)
    else { throw malformed }
    let status = digits.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) }
    guard (100..<600).contains(status), status != 101 else { throw malformed }
    return status
  }

  private var malformed: ProxyTunnelError { ProxyTunnelError(proxy: proxy, fault: .malformed) }
}

/// Why there is no tunnel. The texts name the proxy without its credentials.
public struct ProxyTunnelError: Error, Sendable, Hashable {
  /// What is wrong.
  public enum Fault: Sendable, Hashable {
    /// The host cannot be named in a request.
    case target
    /// The proxy answered with a status other than 2xx.
    case refused(status: Int)
    /// The answer is not one of HTTP/1.
    case malformed
    /// The head of the answer is longer than `ProxyTunnel.longestAnswer`.
    case tooLong
    /// The proxy sent bytes into the tunnel before the client did.
    case earlyBytes
    /// The proxy needs TLS, which the program does not speak to a proxy.
    case secureProxy
  }

  /// The proxy.
  public let proxy: ForwardProxy
  /// What is wrong.
  public let fault: Fault

  /// Creates an error.
  public init(proxy: ForwardProxy, fault: Fault) {
    self.proxy = proxy
    self.fault = fault
  }
}

extension ProxyTunnelError: CustomStringConvertible {
  public var description: String {
    switch fault {
    case .target: "the host cannot be named to the proxy \(proxy)"
    // Some proxies answer 401 to a wrong password.
    case .refused(let status) where status == 407 || status == 401:
      "the proxy \(proxy) answered CONNECT with status \(status): \(proxy.adviceForCredentials)"
    case .refused(let status):
      "the proxy \(proxy) answered CONNECT with status \(status): allow the host and port at the proxy, or add the host"
        + " to NO_PROXY"
    case .malformed: "the proxy \(proxy) did not answer CONNECT as an HTTP proxy does: check the variable"
    case .tooLong:
      "the proxy \(proxy) answered CONNECT with a head of more than \(ProxyTunnel.longestAnswer) bytes"
    case .earlyBytes: "the proxy \(proxy) sent bytes into the tunnel before the client did"
    case .secureProxy:
      "the proxy \(proxy) needs TLS, which the gate does not speak to a proxy: write http:// in \(proxy.variable)"
    }
  }
}

extension ForwardProxy {
  /// What to do when the proxy answers 407.
  public var adviceForCredentials: String {
    authorization == nil
      ? "it requires a user and a password: write \(variable)=http://USER:PASSWORD@HOST:PORT"
      : "it refuses the user and the password of \(variable): correct them, with % @ : / as %25 %40 %3A %2F"
  }
}
