/// The parts of a URL with `https`, which is the only scheme of ACME (RFC 8555 section 6.1).
struct HTTPSPlace: Hashable {
  let host: String
  let port: UInt16
  /// The value of `Host`.
  let authority: String
  /// The path with the query, at least `/`.
  let target: String

  /// Servers choose these URLs, and they are stored and logged.
  private static let longest = 2000

  init?(_ url: String) {
    guard url.utf8.count <= Self.longest, url.hasPrefix("https://"),
      url.utf8.allSatisfy({ (0x21...0x7E).contains($0) }),
      !url.contains("#")
    else { return nil }
    let rest = url.dropFirst("https://".count)
    let authority = rest.prefix { $0 != "/" && $0 != "?" }
    guard !authority.isEmpty, !authority.contains("@") else { return nil }
    let target = rest[authority.endIndex...]
    self.authority = String(authority)
    self.target = target.hasPrefix("/") ? String(target) : "/" + target
    let isBracketed = authority.hasPrefix("[")
    let name = isBracketed ? authority.dropFirst().prefix { $0 != "]" } : authority.prefix { $0 != ":" }
    let end = isBracketed ? authority[name.endIndex...].dropFirst() : authority[name.endIndex...]
    guard !name.isEmpty, end.isEmpty || end.hasPrefix(":") else { return nil }
    guard let port = end.isEmpty ? 443 : UInt16(end.dropFirst()), port > 0 else { return nil }
    (host, self.port) = (String(name), port)
  }
}
