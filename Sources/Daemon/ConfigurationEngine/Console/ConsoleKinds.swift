extension Kind where Value == ConsoleSettings.Address {
  /// An address with a port to listen on. Not limited to loopback: people are on other machines.
  static var consoleAddress: Kind {
    Kind(
      name: "address with port", form: "`address:port`, with an IPv6 address in brackets",
      schema: .matching("^([0-9.]+|\\[[0-9A-Fa-f:.]+\\]):[0-9]+$")
    ) { text throws(InvalidSetting) in
      guard let colon = text.lastIndex(of: ":") else {
        throw InvalidSetting("\(InvalidSetting.quoted(text)) is not an address with a port")
      }
      let port = try Kind<UInt16>.port.read(String(text[text.index(after: colon)...]))
      let host = String(text[..<colon])
      if NetworkName.isIPv4(host) { return ConsoleSettings.Address(address: host, port: port) }
      let bare = String(host.dropFirst().dropLast())
      if host.hasPrefix("["), host.hasSuffix("]"), NetworkName.isIPv6(bare) {
        return ConsoleSettings.Address(address: bare, port: port)
      }
      throw InvalidSetting(
        "\(InvalidSetting.quoted(host)) is not an IP address, or an IPv6 address without brackets",
        suggestion: host == "localhost" ? "127.0.0.1:\(port)" : NetworkName.isIPv6(host) ? "[\(host)]:\(port)" : nil)
    }
  }
}

extension Kind where Value == ConsoleSettings.PublicAddress {
  /// The scheme, host and port of a console, without a path.
  static var consoleURL: Kind {
    Kind(name: "URL", form: "`https://HOST` or `https://HOST:PORT`", schema: .matching("^https://[^/?#@]+$")) {
      text throws(InvalidSetting) in
      let fault = InvalidSetting(
        "\(InvalidSetting.quoted(text)) is not https:// with a host, and a port if it is not 443",
        suggestion: text.hasPrefix("https://") && text.hasSuffix("/") ? String(text.dropLast()) : nil)
      guard text.hasPrefix("https://") else { throw fault }
      let authority = text.dropFirst("https://".count)
      let isBracketed = authority.hasPrefix("[")
      let end = isBracketed ? authority.firstIndex(of: "]").map { authority.index(after: $0) } : nil
      let colon = authority[(end ?? authority.startIndex)...].firstIndex(of: ":")
      let host = authority[..<(colon ?? authority.endIndex)]
      let isHost =
        isBracketed
        ? end == host.endIndex && NetworkName.isIPv6(host.dropFirst().dropLast()) : NetworkName.isHostName(host)
      guard isHost else { throw fault }
      guard let colon else { return ConsoleSettings.PublicAddress(host: host.lowercased(), port: 443) }
      guard let port = Digits.value(of: authority[authority.index(after: colon)...]).flatMap(UInt16.init(exactly:)),
        port > 0
      else { throw fault }
      return ConsoleSettings.PublicAddress(host: host.lowercased(), port: port)
    }
  }
}

extension Kind where Value == String {
  /// The issuer of an OpenID provider (OpenID Connect Core 1.0, section 2).
  static var consoleIssuer: Kind {
    Kind(
      name: "URL", form: "an `https` URL, or an `http` URL on loopback", schema: .matching("^https?://"),
      example: "https://id.example.com"
    ) { text throws(InvalidSetting) in
      let isPlain = text.utf8.allSatisfy { (0x21...0x7E).contains($0) && !Array("?#@\\\"<>".utf8).contains($0) }
      let rest = text.hasPrefix("https://") ? text.dropFirst("https://".count) : text.dropFirst("http://".count)
      let authority = rest.prefix { $0 != "/" }
      let host = authority.hasPrefix("[") ? authority.prefix { $0 != "]" } + "]" : authority.prefix { $0 != ":" }
      let isLocal = ["localhost", "127.0.0.1", "[::1]"].contains(String(host))
      let isIssuer = text.hasPrefix("https://") || text.hasPrefix("http://") && isLocal
      guard isPlain, isIssuer, !host.isEmpty, text.utf8.count <= 512 else {
        throw InvalidSetting(
          "\(InvalidSetting.quoted(text)) is not an https URL, or an http URL on loopback, without user, query and "
            + "fragment")
      }
      return text
    }
  }

  /// A scope (RFC 6749 section 3.3).
  static var scope: Kind {
    Kind(name: "scope", form: "a scope, without blanks", schema: .anyText, example: "groups") {
      text throws(InvalidSetting) in
      let isScope = text.utf8.allSatisfy { (0x21...0x7E).contains($0) && $0 != 0x22 && $0 != 0x5C }
      guard isScope, text.utf8.count <= 128 else {
        throw InvalidSetting("\(InvalidSetting.quoted(text)) is not a scope: printable ASCII without blanks")
      }
      return text
    }
  }
}
