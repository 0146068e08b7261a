internal import ConfigurationEngine

extension GateSettings.ListeningAddress {
  /// The address as in the configuration.
  public var text: String { address.contains(":") ? "[\(address)]:\(port)" : "\(address):\(port)" }
}

extension Kind where Value == GateSettings.ListeningAddress {
  /// An address with a port to listen on. Not limited to loopback: Prometheus and validators of ACME run elsewhere.
  static var listeningAddress: Kind {
    Kind(
      name: "address with port", form: "`address:port`, with an IPv6 address in brackets",
      schema: .matching("^([0-9.]+|\\[[0-9A-Fa-f:.]+\\]):[0-9]+$")
    ) { text throws(InvalidSetting) in
      guard let colon = text.lastIndex(of: ":") else {
        throw InvalidSetting("\(InvalidSetting.quoted(text)) is not an address with a port")
      }
      let port = try Kind<UInt16>.port.read(String(text[text.index(after: colon)...]))
      let host = String(text[..<colon])
      if NetworkName.isIPv4(host) { return GateSettings.ListeningAddress(address: host, port: port) }
      let bare = String(host.dropFirst().dropLast())
      if host.hasPrefix("["), host.hasSuffix("]"), NetworkName.isIPv6(bare) {
        return GateSettings.ListeningAddress(address: bare, port: port)
      }
      throw InvalidSetting(
        "\(InvalidSetting.quoted(host)) is not an IP address, or an IPv6 address without brackets",
        suggestion: host == "localhost" ? "127.0.0.1:\(port)" : NetworkName.isIPv6(host) ? "[\(host)]:\(port)" : nil)
    }
  }
}
