internal import ConfigurationEngine

extension Kind where Value == String {
  /// A DNS name in a certificate that TLS-ALPN-01 can prove: no wildcard and no address (RFC 8737 section 3).
  static var certificateName: Kind {
    Kind(
      name: "host name", form: "a DNS name without wildcard", schema: .matching("^[A-Za-z0-9.-]+$", longest: 253),
      example: "gate.example.com"
    ) { text throws(InvalidSetting) in
      if text.hasPrefix("*") {
        throw InvalidSetting(
          "\(InvalidSetting.quoted(text)) is a wildcard, which the listener cannot prove; list the names one by one")
      }
      guard !NetworkName.isIPv4(text), !NetworkName.isIPv6(text) else {
        throw InvalidSetting("\(InvalidSetting.quoted(text)) is an address; certificates by ACME are for names")
      }
      guard NetworkName.isHostName(text), !text.contains("_") else {
        let meant = text.hasSuffix(".") ? String(text.dropLast()) : nil
        throw InvalidSetting("\(InvalidSetting.quoted(text)) is not a DNS name", suggestion: meant)
      }
      return text.lowercased()
    }
  }

  /// An address for mail. Only its form is checked, and loosely.
  static var emailAddress: Kind {
    Kind(
      name: "e-mail address", form: "an e-mail address", schema: .matching("^[^@\\s]+@[^@\\s]+$"),
      example: "ops@example.com"
    ) { text throws(InvalidSetting) in
      let parts = text.split(separator: "@", omittingEmptySubsequences: false)
      guard parts.count == 2, !parts[0].isEmpty, !parts[0].contains(":"), NetworkName.isHostName(parts[1]),
        text.utf8.allSatisfy({ (0x21...0x7E).contains($0) && $0 != UInt8(ascii: ",") && $0 != UInt8(ascii: "?") })
      else {
        let meant = text.hasPrefix("mailto:") ? String(text.dropFirst("mailto:".count)) : nil
        throw InvalidSetting("\(InvalidSetting.quoted(text)) is not an e-mail address", suggestion: meant)
      }
      return text
    }
  }

  /// The URL of an ACME server's directory.
  static var directoryURL: Kind {
    Kind(
      name: "URL", form: "a URL that begins with `https://`", schema: .matching("^https://[^/?#]+(/[^#]*)?$"),
      example: "https://acme.example.com/directory"
    ) { text throws(InvalidSetting) in
      if text.hasPrefix("http://") {
        throw InvalidSetting(
          "\(InvalidSetting.quoted(text)) is not encrypted",
          suggestion: "https://\(text.dropFirst("http://".count))")
      }
      let rest = text.dropFirst("https://".count)
      let authority = rest.prefix { $0 != "/" }
      guard !authority.contains("@") else { throw InvalidSetting("the URL cannot have a user or a password") }
      let isBracketed = authority.hasPrefix("[")
      let host = isBracketed ? authority.dropFirst().prefix { $0 != "]" } : authority.prefix { $0 != ":" }
      let port = isBracketed ? authority[host.endIndex...].dropFirst() : authority[host.endIndex...]
      guard text.hasPrefix("https://"), text.utf8.allSatisfy({ (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "#") }),
        isBracketed ? NetworkName.isIPv6(host) : NetworkName.isHostName(host),
        port.isEmpty || port.hasPrefix(":") && UInt16(port.dropFirst()).map({ $0 > 0 }) == true
      else {
        throw InvalidSetting("\(InvalidSetting.quoted(text)) is not a URL that begins with https://")
      }
      return text
    }
  }
}
