internal import ConfigurationEngine

extension GateSettings {
  /// An element of `routes[].origins`.
  public enum Origin: Sendable, Hashable {
    /// As browsers write it, `null` included.
    case exact(String)
    /// Every origin except `null`, of clients that an assertion admits.
    case anyWithAssertion
  }
}

extension Kind where Value == GateSettings.Origin {
  /// An origin as in the `Origin` field (RFC 6454 section 6.2): `scheme://host`, with a port that is not the scheme's.
  static var origin: Kind {
    Kind(
      name: "origin", form: "`scheme://host`, `scheme://host:port`, `file://`, `null`, or `any-with-assertion`",
      schema: .matching("^(null|any-with-assertion|[a-z][a-z0-9+.-]*://[^/?#@ ]*)$"), example: "capacitor://localhost"
    ) { text throws(InvalidSetting) in
      switch text {
      case "any-with-assertion": return .anyWithAssertion
      case "null": return .exact(text)
      default: return .exact(try written(text))
      }
    }
  }

  /// Returns `text` if a browser would write this origin.
  private static func written(_ text: String) throws(InvalidSetting) -> String {
    let parts = text.split(separator: "://", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2, isScheme(parts[0].lowercased()) else {
      throw InvalidSetting(
        "\(InvalidSetting.quoted(text)) is not an origin: write scheme://host, null or any-with-assertion",
        suggestion: text == "*" || text == "any" ? "any-with-assertion" : nil)
    }
    let (scheme, authority) = (String(parts[0]), parts[1])
    guard !authority.contains(where: { "/?#@".contains($0) }) else {
      let host = authority.prefix { !"/?#@".contains($0) }
      // What stands before an @ is no host, and may be a password.
      throw InvalidSetting(
        "\(InvalidSetting.quoted(text)) has more than a scheme, a host and a port",
        suggestion: authority.contains("@") ? nil : "\(scheme)://\(host)")
    }
    guard authority.utf8.allSatisfy({ NetworkName.isLetterOrDigit($0) || "-._:[]".utf8.contains($0) }) else {
      throw InvalidSetting("\(InvalidSetting.quoted(text)) has a wildcard or another character that no host has")
    }
    guard text == text.lowercased() else {
      throw InvalidSetting(
        "\(InvalidSetting.quoted(text)): browsers write origins in small letters", suggestion: text.lowercased())
    }
    for (web, port) in [("https", ":443"), ("http", ":80")] where scheme == web {
      guard !authority.isEmpty else { throw InvalidSetting("\(InvalidSetting.quoted(text)) has no host") }
      guard !authority.hasSuffix(port) else {
        throw InvalidSetting(
          "\(InvalidSetting.quoted(text)): browsers leave out the default port",
          suggestion: String(text.dropLast(port.count)))
      }
    }
    guard authority.isEmpty || isHostAndPort(authority) else {
      throw InvalidSetting("\(InvalidSetting.quoted(text)) has no valid host and port: no request has this origin")
    }
    return text
  }

  private static func isHostAndPort(_ authority: Substring) -> Bool {
    let isBracketed = authority.hasPrefix("[")
    let host = isBracketed ? authority.dropFirst().prefix { $0 != "]" } : authority.prefix { $0 != ":" }
    let rest = authority[host.endIndex...].dropFirst(isBracketed ? 1 : 0)
    guard
      isBracketed
        ? NetworkName.isIPv6(host) && authority[host.endIndex...].first == "]"
        : NetworkName.isHostName(host.hasSuffix(".") ? host.dropLast() : host)
    else { return false }
    // Browsers write a port without leading zeros.
    return rest.isEmpty || rest.first == ":" && UInt16(rest.dropFirst()).map { ":\($0)" == rest && $0 > 0 } == true
  }

  private static func isScheme(_ text: String) -> Bool {
    guard let first = text.utf8.first, (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(first) else { return false }
    return text.utf8.allSatisfy { NetworkName.isLetterOrDigit($0) || "+-.".utf8.contains($0) }
  }
}
