internal import ConfigurationEngine

extension Kind where Value == String {
  /// A name of a certificate: a DNS name in lower case, perhaps a wildcard, or an IP address in its usual text form.
  static var certificateName: Kind {
    Kind(
      name: "host name", form: "a DNS name, an IP address, or with `dns-01` a wildcard",
      schema: .matching("^(\\*\\.)?[A-Za-z0-9.:-]+$", longest: 253), example: "gate.example.com"
    ) { text throws(InvalidSetting) in
      if let address = NetworkName.bytes(of: text) {
        guard address.contains(where: { $0 != 0 }) else {
          throw InvalidSetting("\(InvalidSetting.quoted(text)) is not the address of a machine")
        }
        return NetworkName.text(of: address)
      }
      let name = text.trimmingPrefix("*.")
      guard !name.contains("*") else {
        throw InvalidSetting("\(InvalidSetting.quoted(text)) is not a wildcard: write *. and a DNS name")
      }
      guard NetworkName.isHostName(name), NetworkName.bytes(of: name) == nil, !text.contains("_") else {
        throw InvalidSetting(
          "\(InvalidSetting.quoted(text)) is not a DNS name or an IP address", suggestion: suggestedName(for: text))
      }
      return text.lowercased()
    }
  }

  /// The name that was probably meant: without the dot of the root, or without the brackets of an address.
  private static func suggestedName(for text: String) -> String? {
    if text.hasSuffix(".") { return String(text.dropLast()) }
    let bare = text.dropFirst().dropLast()
    return text.hasPrefix("[") && text.hasSuffix("]") && NetworkName.isIPv6(bare) ? String(bare) : nil
  }

  /// The name of a profile (draft-ietf-acme-profiles).
  static var profileName: Kind {
    Kind(
      name: "profile", form: "the name of a profile of the ACME server, without blanks",
      schema: .matching("^[!-~]+$", longest: 64), example: "shortlived"
    ) { text throws(InvalidSetting) in
      guard (1...64).contains(text.utf8.count), text.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
        throw InvalidSetting(
          "\(InvalidSetting.quoted(text)) is not the name of a profile: 1 to 64 ASCII characters without blanks")
      }
      return text
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
        isBracketed
          ? NetworkName.isIPv6(host) && authority[host.endIndex...].first == "]" : NetworkName.isHostName(host),
        port.isEmpty || port.hasPrefix(":") && UInt16(port.dropFirst()).map({ $0 > 0 }) == true
      else {
        throw InvalidSetting("\(InvalidSetting.quoted(text)) is not a URL that begins with https://")
      }
      return text
    }
  }
}
