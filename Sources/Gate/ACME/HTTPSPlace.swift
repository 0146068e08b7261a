/// The parts of a URL with `https`, which is the only scheme of ACME (RFC 8555 section 6.1).
public struct HTTPSPlace: Hashable, Sendable {
  /// A name or an address; an IPv6 address has no brackets.
  public let host: String
  /// The port, 443 by default.
  public let port: UInt16
  /// The value of `Host`.
  let authority: String
  /// The path with the query, at least `/`.
  let target: String

  /// Servers choose these URLs, and they are stored and logged.
  private static let longest = 2000

  /// Returns `nil` unless `url` is an absolute URL with `https`, at most 2,000 bytes long.
  public init?(_ url: String) {
    guard url.utf8.count <= Self.longest, url.hasPrefix("https://"),
      url.utf8.allSatisfy({ (0x21...0x7E).contains($0) }),
      !url.contains("#")
    else { return nil }
    let rest = url.dropFirst("https://".count)
    let authority = rest.prefix { $0 != "/" && $0 != "?" }
    guard !authority.isEmpty, !authority.contains("@") else { return nil }
    let target = rest[authority.endIndex...]
    // Some servers know their name only without the default port (RFC 9110 section 4.2.3).
    self.authority = String(authority.hasSuffix(":443") ? authority.dropLast(4) : authority)
    self.target = target.hasPrefix("/") ? String(target) : "/" + target
    let isBracketed = authority.hasPrefix("[")
    let name = isBracketed ? authority.dropFirst().prefix { $0 != "]" } : authority.prefix { $0 != ":" }
    let end = isBracketed ? authority[name.endIndex...].dropFirst() : authority[name.endIndex...]
    guard !name.isEmpty, end.isEmpty || end.hasPrefix(":") else { return nil }
    guard let port = end.isEmpty ? 443 : UInt16(end.dropFirst()), port > 0 else { return nil }
    (host, self.port) = (String(name), port)
  }
}
