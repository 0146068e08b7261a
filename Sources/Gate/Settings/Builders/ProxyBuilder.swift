extension GateSettings {
  /// What `listen.proxy_protocol` takes.
  enum ProxyHeaders: String, Sendable, Hashable, CaseIterable { case off, v1, v2, any }

  /// The proxies that hand connections on, and how they say whose these are.
  public struct Proxies: Sendable, Hashable {
    public enum Version: String, Sendable, Hashable, CaseIterable { case v1, v2, any }
    public var version: Version
    /// Never empty.
    public var trusted: [AddressRange]
  }

  /// An address and how many of its first bits count; the others are zero.
  public struct AddressRange: Sendable, Hashable {
    /// 4 or 16, in network order.
    public var bytes: [UInt8]
    public var length: Int
  }
}

extension SettingsBuilder {
  /// Headers without proxies that are trusted would close every connection, which is a fault. Proxies without headers
  /// are those that ask `/attest/verify`.
  mutating func proxies() -> GateSettings.Proxies? {
    let trusted = elements(Keys.trustedProxies)
    let list = path(Keys.trustedProxies, 0).parent
    guard let headers = value(Keys.proxyProtocol) else { return nil }
    guard let version = GateSettings.Proxies.Version(rawValue: headers.rawValue) else { return nil }
    if trusted.isEmpty, entries.indices(of: list).isEmpty, !entries.isFaulty(list) {
      refuse(
        path(Keys.proxyProtocol), "closes every connection without listen.trusted_proxies",
        hint: "name the addresses of the proxies: trusted_proxies: [192.0.2.10]")
    }
    return GateSettings.Proxies(version: version, trusted: trusted)
  }
}
