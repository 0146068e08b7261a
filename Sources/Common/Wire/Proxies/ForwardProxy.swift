internal import ByteCoding
#if canImport(Glibc)
  internal import Glibc
#else
  internal import Darwin
#endif

/// An HTTP proxy of the network, through which a program reaches servers.
///
/// Its texts name the place and the variable, never the user or the password.
public struct ForwardProxy: Sendable, Hashable {
  /// How the proxy itself is reached.
  public enum Scheme: String, Sendable, Hashable {
    /// Without TLS.
    case http
    /// With TLS, and a certificate for the proxy's name.
    case https

    /// The port of a URL without one: what curl assumes.
    var standardPort: UInt16 { self == .http ? 1080 : 443 }
  }

  /// How the proxy itself is reached.
  public let scheme: Scheme
  /// The name or address of the proxy; an IPv6 address has no brackets.
  public let host: String
  /// The port of the proxy.
  public let port: UInt16
  /// The environment variable that names it.
  public let variable: String
  /// The value of `Proxy-Authorization` (Basic, RFC 7617); `nil` without credentials.
  public let authorization: String?
}

extension ForwardProxy: CustomStringConvertible, CustomDebugStringConvertible {
  /// `http://proxy.example.com:3128 (HTTPS_PROXY)`
  public var description: String {
    "\(scheme.rawValue)://\(host.contains(":") ? "[\(host)]" : host):\(port) (\(variable))"
  }
  public var debugDescription: String { description }
}

extension ForwardProxy: CustomReflectable {
  /// Keeps the credentials out of dumps.
  public var customMirror: Mirror { Mirror(self, children: ["place": description]) }
}

extension ForwardProxy {
  /// The longest value of a variable, in bytes.
  static let longestURL = 4096
  /// The longest name of the domain name system.
  private static let longestHost = 253

  /// Parses the value of `variable` as curl does: `[http://|https://][USER[:PASSWORD]@]HOST[:PORT][/…]`. User and
  /// password are percent-decoded.
  ///
  /// - Throws: `ProxyVariableError`, which has no part of the value but its scheme.
  init(_ value: String, of variable: String) throws(ProxyVariableError) {
    func fault(_ reason: String) -> ProxyVariableError { ProxyVariableError(variable: variable, reason: reason) }
    let bytes = Array(value.utf8.prefix(Self.longestURL + 1))
    guard bytes.count <= Self.longestURL else { throw fault("the value is longer than \(Self.longestURL) bytes") }
    guard bytes.allSatisfy({ (0x21...0x7E).contains($0) }) else {
      throw fault("the value has a blank, a control character or a letter outside ASCII")
    }
    var rest = value[...]
    var scheme = Scheme.http
    if let separator = value.firstRange(of: "://") {
      let name = value[..<separator.lowerBound].lowercased()
      guard let known = Scheme(rawValue: name) else {
        let isName = name.utf8.count <= 16 && name.utf8.allSatisfy { (0x61...0x7A).contains($0) || Self.isDigit($0) }
        throw fault(
          name.hasPrefix("socks") && isName
            ? "a SOCKS proxy (\(name)://) is not supported"
            : isName ? "the scheme \(name):// is not that of a proxy" : "the value does not begin with a scheme")
      }
      scheme = known
      rest = value[separator.upperBound...]
    }
    rest = rest.prefix { !"/?#".contains($0) }
    let parts = rest.split(separator: "@", omittingEmptySubsequences: false)
    guard parts.count <= 2 else { throw fault("the value has more than one @: write @ in a password as %40") }
    self.scheme = scheme
    self.variable = variable
    authorization = parts.count == 2 ? try Self.authorization(parts[0], fault) : nil
    (host, port) = try Self.place(parts[parts.count - 1], scheme, fault)
  }

  /// Returns the field for `USER:PASSWORD`; `nil` for an empty text.
  private static func authorization(
    _ text: Substring, _ fault: (String) -> ProxyVariableError
  ) throws(ProxyVariableError) -> String? {
    guard !text.isEmpty else { return nil }
    let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
    guard let user = percentDecoded(parts[0]), let password = percentDecoded(parts.dropFirst().first ?? "") else {
      throw fault("the user or the password has a % without two hexadecimal digits: write % as %25")
    }
    guard (user + password).allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
      throw fault("the user or the password has a control character")
    }
    guard !user.contains(UInt8(ascii: ":")) else { throw fault("the user has a colon, which Basic cannot carry") }
    return "Basic " + Base64.encode(user + [UInt8(ascii: ":")] + password)
  }

  private static func place(
    _ text: Substring, _ scheme: Scheme, _ fault: (String) -> ProxyVariableError
  ) throws(ProxyVariableError) -> (String, UInt16) {
    let isBracketed = text.hasPrefix("[")
    let host = isBracketed ? text.dropFirst().prefix { $0 != "]" } : text.prefix { $0 != ":" }
    var end = text[host.endIndex...]
    if isBracketed {
      guard end.hasPrefix("]"), HostAddress(ipv6: String(host)) != nil else {
        throw fault("the host in brackets is not an IPv6 address")
      }
      end = end.dropFirst()
    } else {
      guard !host.isEmpty else { throw fault("the value names no host") }
      guard host.utf8.count <= longestHost, host.utf8.allSatisfy(isOfName) else {
        throw fault("the host is not a name or an address")
      }
    }
    guard end.isEmpty || end.hasPrefix(":") else { throw fault("the host is not followed by a port") }
    let digits = end.dropFirst()
    guard !digits.isEmpty else { return (String(host), scheme.standardPort) }
    guard let port = decimalPort(digits) else { throw fault("the port is not a number from 1 to 65535") }
    return (String(host), port)
  }

  /// The number of a port in at most five digits.
  static func decimalPort(_ digits: Substring) -> UInt16? {
    guard (1...5).contains(digits.utf8.count), digits.utf8.allSatisfy(isDigit) else { return nil }
    return UInt16(digits).flatMap { $0 > 0 ? $0 : nil }
  }

  static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }

  /// Whether `byte` occurs in names of hosts. Underscores are in many internal names.
  private static func isOfName(_ byte: UInt8) -> Bool {
    (0x61...0x7A).contains(byte.lowercasedASCII) || isDigit(byte) || "-._".utf8.contains(byte)
  }

  private static func percentDecoded(_ text: Substring) -> [UInt8]? {
    var (bytes, rest) = ([UInt8](), text.utf8[...])
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "%") else {
        bytes.append(byte)
        continue
      }
      guard let decoded = Hex.decode(String(decoding: rest.prefix(2), as: UTF8.self)), decoded.count == 1 else {
        return nil
      }
      bytes += decoded
      rest = rest.dropFirst(2)
    }
    return bytes
  }
}
