internal import ConfigurationEngine
internal import GateService
internal import Settings
internal import Transport
internal import TransportEngine

extension GateSettings.Limits {
  /// The limits that the gate's service enforces.
  var requests: RequestLimits {
    var limits = RequestLimits()
    limits.sessions = globalSessions
    limits.challengesPerAddress = perAddress.challenges.flatMap(Rate.init)
    limits.registrationsPerAddress = perAddress.registrations.flatMap(Rate.init)
    limits.upgradesPerAddress = perAddress.upgrades.flatMap(Rate.init)
    limits.sessionsPerKey = perKey.sessions
    limits.closesOldestSessionOfKey = perKey.whenFull == .closeOldest
    limits.upgradesPerKey = perKey.upgrades.flatMap(Rate.init)
    return limits
  }

}

extension GateSettings {
  /// The limits that the engine enforces at the public listener.
  var engineLimits: EngineLimits {
    var limits = EngineLimits()
    limits.connectionsPerAddress = self.limits.perAddress.connections
    limits.maxHead = listen.maxHead
    limits.descriptorCeiling = DescriptorLimit.ceilingOfClients
    return limits
  }
}

extension Rate {
  fileprivate init?(_ rate: GateSettings.Rate) { self.init(rate.count, every: rate.period) }
}

extension GateSettings.Listen {
  /// The PROXY protocol settings: the version, and the proxies whose headers are trusted.
  var proxyProtocol: ProxyProtocol? {
    proxies.flatMap { proxies in
      ProxyProtocol.Version(rawValue: proxies.version.rawValue).map {
        ProxyProtocol($0, trusting: proxies.trusted.compactMap(AddressRange.init))
      }
    }
  }

  /// The proxies that may call the endpoints of the gate on behalf of clients.
  var forwardAuthProxies: [AddressRange] { trustedProxies.compactMap(AddressRange.init) }

  /// Finds the clients behind the proxies, if their `X-Forwarded-For` is trusted.
  var forwardedClients: ForwardedClients? {
    trustsForwardedFor ? ForwardedClients(through: forwardAuthProxies) : nil
  }
}

extension AddressRange {
  fileprivate init?(_ range: GateSettings.AddressRange) { self.init(bytes: range.bytes, length: range.length) }
}
