internal import ConfigurationEngine

extension SettingsBuilder {
  /// Refuses listeners that share an address: the second one could not start.
  mutating func refuseSharedAddresses(
    _ listen: GateSettings.Listen?, _ admin: GateSettings.Admin?, _ console: ConsoleSettings?,
    _ metrics: GateSettings.ListeningAddress?, _ acme: GateSettings.ListeningAddress?
  ) {
    var taken: [(key: String, address: String, port: UInt16)] = []
    if let listen { taken.append(("listen", listen.address, listen.port)) }
    if case .loopback(let address, let port)? = admin?.address {
      refuse(address, port, at: path(Keys.adminListen), among: taken)
      taken.append(("admin.listen", address, port))
    }
    if let console = console?.listen {
      refuse(console.address, console.port, at: path(ConsoleKeys.listen), among: taken)
      taken.append(("admin.console.listen", console.address, console.port))
    }
    if let metrics {
      refuse(metrics.address, metrics.port, at: path(Keys.metricsListen), among: taken)
      taken.append(("metrics.listen", metrics.address, metrics.port))
    }
    if let acme { refuse(acme.address, acme.port, at: path(Keys.acmeHTTPListen), among: taken) }
  }

  private mutating func refuse(
    _ address: String, _ port: UInt16, at path: SettingPath,
    among taken: [(key: String, address: String, port: UInt16)]
  ) {
    // Port 0 selects a different free port each time.
    guard port != 0, let other = taken.first(where: { $0.port == port && Self.meet($0.address, address) }) else {
      return
    }
    refuse(path, "port \(port) is used by \(other.key) at \(other.address): two listeners cannot share it")
  }

  /// Whether a listener on one address also receives connections to the other.
  private static func meet(_ first: String, _ second: String) -> Bool {
    guard let one = bytes(of: first), let two = bytes(of: second) else { return first == second }
    let isAny = { (bytes: [UInt8]) in bytes.allSatisfy { $0 == 0 } }
    // `::` accepts IPv4 as well.
    if one.count == 16, isAny(one) { return true }
    if two.count == 16, isAny(two) { return true }
    return one.count == two.count && (one == two || isAny(one) || isAny(two))
  }

  /// The bytes of an address. Those of an IPv4-mapped IPv6 address are the IPv4 address, at which its socket listens.
  private static func bytes(of address: String) -> [UInt8]? {
    guard let bytes = NetworkName.bytes(of: address) else { return nil }
    return bytes.starts(with: [UInt8](repeating: 0, count: 10) + [0xFF, 0xFF]) ? Array(bytes[12...]) : bytes
  }
}
