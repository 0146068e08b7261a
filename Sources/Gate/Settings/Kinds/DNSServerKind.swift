internal import ConfigurationEngine

extension Kind where Value == GateSettings.TLS.ACME.DNSServer {
  /// A DNS server: `host:port`, or a host alone for port 53.
  static var dnsServer: Kind {
    Kind(
      name: "DNS server", form: "`host` or `host:port`, with an IPv6 address in brackets",
      schema: .matching("^([0-9A-Za-z._-]+|\\[[0-9A-Fa-f:.]+\\])(:[0-9]+)?$"), example: "192.0.2.53:53"
    ) { text throws(InvalidSetting) in
      let isBracketed = text.hasPrefix("[")
      let host = isBracketed ? text.dropFirst().prefix { $0 != "]" } : text.prefix { $0 != ":" }
      let rest = text[host.endIndex...].dropFirst(isBracketed ? 1 : 0)
      let port = rest.isEmpty ? 53 : rest.hasPrefix(":") ? Digits.value(of: rest.dropFirst()) : nil
      guard
        isBracketed
          ? NetworkName.isIPv6(host) && text[host.endIndex...].first == "]" : NetworkName.isHostName(host),
        let port, let port = UInt16(exactly: port), port > 0
      else {
        throw InvalidSetting(
          "\(InvalidSetting.quoted(text)) is not a DNS server: write host or host:port",
          suggestion: NetworkName.isIPv6(text) ? "[\(text)]" : nil)
      }
      return GateSettings.TLS.ACME.DNSServer(host: String(host), port: port)
    }
  }
}
