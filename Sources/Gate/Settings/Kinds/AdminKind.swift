internal import ConfigurationEngine

extension GateSettings.Admin.Address {
  /// The address as in the configuration.
  public var text: String {
    switch self {
    case .unix(let path): "unix:\(path)"
    case .loopback(let address, let port): address.contains(":") ? "[\(address)]:\(port)" : "\(address):\(port)"
    }
  }
}

extension Kind where Value == GateSettings.Admin.Address {
  /// An address for the admin server. Addresses that other machines could reach are refused.
  static var adminAddress: Kind {
    Kind(name: "admin address", form: "`unix:/path`, `127.0.0.1:port` or `[::1]:port`") { text throws(InvalidSetting) in
      if text.hasPrefix("unix:") { return .unix(path: try SocketPath.read(text)) }
      guard let colon = text.lastIndex(of: ":") else {
        throw InvalidSetting(
          "\(InvalidSetting.quoted(text)) is not unix:/path or an address with a port",
          suggestion: text.hasPrefix("/") ? "unix:\(text)" : nil)
      }
      let port = try Kind<UInt16>.port.read(String(text[text.index(after: colon)...]))
      let host = String(text[..<colon])
      let address = host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : host
      guard NetworkName.isIPv4(address) || address != host && NetworkName.isIPv6(address) else {
        throw InvalidSetting(
          "\(InvalidSetting.quoted(host)) is not an IP address",
          suggestion: host == "localhost" ? "127.0.0.1:\(port)" : nil)
      }
      guard address.hasPrefix("127.") || address == "::1" else {
        throw InvalidSetting(
          "\(address) is not a loopback address: the admin server must be reachable only from this machine")
      }
      return .loopback(address: address, port: port)
    }
  }
}
