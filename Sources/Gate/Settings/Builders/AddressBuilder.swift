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
    guard port != 0,
      let other = taken.first(where: { $0.port == port && NetworkName.listenersMeet($0.address, address) })
    else { return }
    refuse(path, "port \(port) is used by \(other.key) at \(other.address): two listeners cannot share it")
  }
}
