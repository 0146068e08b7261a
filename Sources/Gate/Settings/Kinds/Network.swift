internal import ConfigurationEngine

extension Kind where Value == String {
  /// An address to listen on. Names are refused, because they can resolve to changing or to several addresses.
  static var address: Kind {
    Kind(
      name: "address", form: "an IPv4 or IPv6 address; `::` accepts both", schema: .matching("^[0-9A-Fa-f:.]+$"),
      example: "127.0.0.1"
    ) { text throws(InvalidSetting) in
      if NetworkName.isIPv4(text) || NetworkName.isIPv6(text) { return text }
      let bare = text.hasPrefix("[") && text.hasSuffix("]") ? String(text.dropFirst().dropLast()) : text
      let meant = NetworkName.isIPv6(bare) ? bare : ["localhost": "127.0.0.1", "*": "::"][text]
      throw InvalidSetting("\(InvalidSetting.quoted(text)) is not an IP address", suggestion: meant)
    }
  }

  /// The name in an upstream's certificate.
  static var serverName: Kind {
    Kind(
      name: "host name", form: "a host name or an IP address", schema: .matching("^[A-Za-z0-9_.:-]+$"),
      example: "chat.example.com"
    ) { text throws(InvalidSetting) in
      guard NetworkName.isIPv6(text) || NetworkName.isHostName(text) else {
        throw InvalidSetting("\(InvalidSetting.quoted(text)) is not a host name")
      }
      return text
    }
  }

  /// The name of a header field (RFC 9110 section 5.1).
  static var fieldName: Kind {
    token(
      name: "header name", form: "the name of a header field", example: "X-Internal-User",
      fault: "is not the name of a header field")
  }

  /// The name of a header field that servers do not confuse with another: letters, digits and hyphens.
  static var plainFieldName: Kind {
    Kind(
      name: "header name", form: "the name of a header field, of letters, digits and hyphens",
      schema: .textOrNumber("^[0-9A-Za-z-]+$"), example: "X-App-Version"
    ) { text throws(InvalidSetting) in
      guard !text.isEmpty, text.utf8.allSatisfy({ NetworkName.isLetterOrDigit($0) || $0 == UInt8(ascii: "-") }) else {
        throw InvalidSetting(
          "\(InvalidSetting.quoted(text)) has other characters than letters, digits and hyphens: servers would confuse it"
        )
      }
      return text
    }
  }

  /// A subprotocol of WebSocket (RFC 6455 section 4.1).
  static var subprotocol: Kind {
    token(
      name: "subprotocol", form: "a token, as a client offers it", example: "mqtt",
      fault: "is not a token, which a subprotocol must be")
  }

  /// A token (RFC 9110 section 5.6.2).
  private static func token(name: String, form: String, example: String, fault: String) -> Kind {
    let others = Set("!#$%&'*+-.^_`|~".utf8)
    return Kind(
      name: name, form: form, schema: .textOrNumber("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$"), example: example
    ) { text throws(InvalidSetting) in
      guard !text.isEmpty, text.utf8.allSatisfy({ NetworkName.isLetterOrDigit($0) || others.contains($0) }) else {
        throw InvalidSetting("\(InvalidSetting.quoted(text)) \(fault)")
      }
      return text
    }
  }

  /// The path of a route, in the normal form that requests are matched in.
  static var routePath: Kind {
    Kind(
      name: "route", form: "`/` or `/segments`, matched by whole segments",
      schema: .matching("^/([^/?#%]+(/[^/?#%]+)*)?$"), example: "/chat"
    ) { text throws(InvalidSetting) in
      guard text.hasPrefix("/") else {
        let isMeant = (try? checkSegments(of: "/\(text)")) != nil || text.isEmpty
        throw InvalidSetting(
          "\(InvalidSetting.quoted(text)) does not start with a slash"
            + (isMeant ? "" : ", and routes match whole segments, not patterns"),
          suggestion: isMeant ? "/\(text)" : nil)
      }
      if text == "/" { return text }
      if text.hasSuffix("/") {
        throw InvalidSetting(
          "\(InvalidSetting.quoted(text)) ends with a slash; routes match whole segments without it",
          suggestion: String(text.dropLast()))
      }
      try checkSegments(of: text)
      return text
    }
  }

  private static func checkSegments(of text: String) throws(InvalidSetting) {
    if text.hasSuffix("*") {
      // Other proxies use `*` as a wildcard. Here it would be an ordinary character.
      var meant = text.prefix { $0 != "*" }
      if meant.count > 1, meant.hasSuffix("/") { meant.removeLast() }
      throw InvalidSetting(
        "\(InvalidSetting.quoted(text)) ends with *, which is not a wildcard here; routes match whole segments "
          + "without it",
        suggestion: String(meant))
    }
    let others = Set("-._~!$&'()*+,;=:@".utf8)
    for segment in text.dropFirst().split(separator: "/", omittingEmptySubsequences: false) {
      guard !segment.isEmpty else { throw InvalidSetting("\(InvalidSetting.quoted(text)) contains an empty segment") }
      guard segment != ".", segment != ".." else {
        throw InvalidSetting("\(InvalidSetting.quoted(text)) contains a dot segment")
      }
      guard segment.utf8.allSatisfy({ NetworkName.isLetterOrDigit($0) || others.contains($0) }) else {
        throw InvalidSetting(
          "\(InvalidSetting.quoted(text)) contains characters that a route cannot match: escapes, queries, fragments and "
            + "patterns"
        )
      }
    }
    if text == "/attest" || text.hasPrefix("/attest/") || text == "/.well-known/sallyport"
      || text.hasPrefix("/.well-known/sallyport/")
    {
      throw InvalidSetting("\(text) is reserved for the gate")
    }
  }
}
