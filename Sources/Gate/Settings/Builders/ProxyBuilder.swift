internal import ConfigurationEngine

extension GateSettings {
  /// The values of `listen.proxy_protocol`.
  enum ProxyHeaders: String, Sendable, Hashable, CaseIterable { case off, v1, v2, any }

  /// The values of `listen.forwarded_for`.
  public enum ForwardedFor: String, Sendable, Hashable, CaseIterable { case ignore, trust }

  /// The trusted proxies, and the version of their PROXY headers.
  public struct Proxies: Sendable, Hashable {
    public enum Version: String, Sendable, Hashable, CaseIterable { case v1, v2, any }
    public var version: Version
    /// Never empty.
    public var trusted: [AddressRange]
  }

  /// An address prefix: the first `length` bits of `bytes`; the other bits are zero.
  public struct AddressRange: Sendable, Hashable {
    /// 4 or 16 bytes, in network order.
    public var bytes: [UInt8]
    public var length: Int
  }
}

extension SettingsBuilder {
  /// PROXY headers without trusted proxies are a fault, because every connection would be closed. Trusted proxies
  /// without PROXY headers are valid: they call `/attest/verify`.
  mutating func proxies() -> GateSettings.Proxies? {
    let trusted = elements(Keys.trustedProxies)
    let list = path(Keys.trustedProxies, 0).parent
    guard let headers = value(Keys.proxyProtocol) else { return nil }
    guard let version = GateSettings.Proxies.Version(rawValue: headers.rawValue) else { return nil }
    if trusted.isEmpty, entries.indices(of: list).isEmpty, !entries.isFaulty(list) {
      refuse(
        path(Keys.proxyProtocol), "without listen.trusted_proxies, every connection would be closed",
        hint: "list the addresses of the proxies: trusted_proxies: [192.0.2.10]")
    }
    return GateSettings.Proxies(version: version, trusted: trusted)
  }

  /// Without trusted proxies the setting would have no effect.
  mutating func trustsForwardedFor() -> Bool {
    guard value(Keys.forwardedFor) == .trust else { return false }
    let list = path(Keys.trustedProxies, 0).parent
    if entries.indices(of: list).isEmpty, !entries.isFaulty(list) {
      refuse(
        path(Keys.forwardedFor), "has no effect without listen.trusted_proxies",
        hint: "list the addresses of the proxies: trusted_proxies: [192.0.2.10]")
    }
    for (index, range) in elements(Keys.trustedProxies).enumerated() where range.length == 0 {
      refuse(
        list[index], "with forwarded_for: trust, every client could choose its address",
        hint: "list the addresses of your proxies alone")
    }
    if case .some(.some) = value(Keys.connectionsPerAddress) {
      warn(
        path(Keys.connectionsPerAddress),
        "counts connections, and a balancer in listen.trusted_proxies has a few for all clients: limit upgrades instead"
      )
    }
    return true
  }
}
