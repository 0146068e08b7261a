internal import ConfigurationEngine

extension SettingsBuilder {
  mutating func routes() -> [GateSettings.Route] {
    var routes: [GateSettings.Route] = []
    let list = SettingPath.root["routes"]
    for index in elementIndices(of: list) {
      let upstreams = upstreams(index)
      guard let routePath = value(Keys.routePath, index) else { continue }
      if routes.contains(where: { $0.path == routePath }) {
        refuse(path(Keys.routePath, index), "the route \(routePath) is configured twice")
      }
      let audience = value(Keys.routeAudience, index)
      let subprotocol = value(Keys.routeSubprotocol, index)
      let origins = elements(Keys.routeOrigins, index)
      let carriers = elements(Keys.routeCredentials, index)
      let rewrite = rewrite(index)
      guard let upstreams, let balance = value(Keys.balance, index), let host = value(Keys.routeHost, index),
        let forward = value(Keys.forward, index),
        let maxResponseHead = value(Keys.maxResponseHead, index)
      else { continue }
      if case .tcp = upstreams[0] {
        if forward == .all {
          refuse(path(Keys.forward, index), "tcp:// cannot forward ordinary requests: they need an HTTP upstream")
        }
        if audience != nil {
          refuse(path(Keys.routeAudience, index), "has no effect for tcp://: this upstream gets no identity assertion")
        }
        // What a default says has no effect either, but does no harm.
        let changes: [(KeyDefinition, Bool)] = [
          (Keys.stripPrefix.definition, value(Keys.stripPrefix, index) == true),
          (Keys.rewrite.definition, value(Keys.rewrite, index) != nil), (Keys.routeHost.definition, host != .keep),
        ]
        for (key, isChange) in changes where isChange {
          refuse(
            SettingPath(pattern: key.pattern, indices: [index]),
            "has no effect for tcp://: this upstream gets no request")
        }
      } else if subprotocol != nil {
        refuse(path(Keys.routeSubprotocol, index), "has an effect only for tcp://: other upstreams choose themselves")
      }
      if upstreams.count > 1, host == .upstream {
        refuse(
          path(Keys.routeHost, index), "several servers have no common address: name the host that all of them serve")
      }
      routes.append(
        GateSettings.Route(
          path: routePath, upstreams: upstreams, balance: balance, health: health(index, of: upstreams),
          rewrite: rewrite,
          host: host.text(for: upstreams[0]), forward: forward, audience: audience, subprotocol: subprotocol,
          maxHead: maxHead(index), maxResponseHead: maxResponseHead, origins: origins, carriers: carriers))
    }
    if entries.containers[list] != nil, entries.indices(of: list).isEmpty, !entries.isFaulty(list) {
      warn(list, "empty list: the gate refuses every session")
    }
    return routes
  }

  private mutating func health(_ index: Int, of upstreams: [GateSettings.Upstream]) -> GateSettings.HealthCheck? {
    guard let asked = value(Keys.healthPath, index), let interval = value(Keys.healthInterval, index) else {
      // A configuration that this program has written names the default too.
      if let interval = value(Keys.healthInterval, index), interval != .seconds(10),
        !entries.isFaulty(path(Keys.healthPath, index))
      {
        refuse(path(Keys.healthInterval, index), "has no effect without routes[\(index)].health.path")
      }
      return nil
    }
    if case .tcp = upstreams[0] {
      refuse(path(Keys.healthPath, index), "has no effect for tcp://: this upstream gets no request")
    } else if upstreams.count == 1 {
      refuse(path(Keys.healthPath, index), "has an effect only for several servers: there is no other to go to")
    }
    return GateSettings.HealthCheck(path: asked, interval: interval)
  }

  /// The listener refuses a longer head before the route is known.
  private mutating func maxHead(_ index: Int) -> Int? {
    guard let limit = value(Keys.maxRouteHead, index) else { return nil }
    if let common = value(Keys.maxRequestHead), limit > common {
      refuse(
        path(Keys.maxRouteHead, index), "is more than listen.max_head, \(Size.text(common))",
        hint: "raise listen.max_head, and set max_head of the routes that need less")
    }
    return limit
  }

  /// What replaces the path of the route.
  private mutating func rewrite(_ index: Int) -> String? {
    let strips = value(Keys.stripPrefix, index) ?? false
    let rewrite = value(Keys.rewrite, index)
    if strips, rewrite != nil {
      refuse(path(Keys.rewrite, index), "contradicts strip_prefix, which removes the path that this would replace")
    }
    return rewrite ?? (strips ? "/" : nil)
  }

  private mutating func upstreams(_ index: Int) -> [GateSettings.Upstream]? {
    let addresses = required(Keys.upstream, index)
    let caFile = value(Keys.upstreamCA, index)
    let serverName = value(Keys.upstreamName, index)
    let identity = upstreamIdentity(index)
    check(.certificates, Keys.upstreamCA, index)
    guard let addresses else { return nil }
    if let scheme = addresses.first?.scheme, scheme != .wss, caFile != nil || serverName != nil || identity != nil {
      refuse(path(Keys.upstreamCA, index).parent, "has no effect for \(scheme.rawValue): only wss:// uses TLS")
    }
    return addresses.map { address in
      switch address.scheme {
      case .ws: .webSocket(host: address.host, port: address.port)
      case .wss:
        .secureWebSocket(
          host: address.host, port: address.port,
          GateSettings.UpstreamTLS(caFile: caFile, serverName: serverName, identity: identity))
      case .unix: .unix(path: address.host)
      case .tcp: .tcp(host: address.host, port: address.port)
      }
    }
  }

  /// The gate's own certificate for an upstream.
  private mutating func upstreamIdentity(_ index: Int) -> GateSettings.TLS.Files? {
    let (certificate, key) = (value(Keys.upstreamCertificate, index), value(Keys.upstreamKey, index))
    check(.certificates, Keys.upstreamCertificate, index)
    checkSecretKeys(.privateKey, Keys.upstreamKey, index)
    guard let certificate, let key else {
      if certificate != nil { refuse(path(Keys.upstreamCertificate, index), "has no effect without key_file") }
      if key != nil { refuse(path(Keys.upstreamKey, index), "has no effect without cert_file") }
      return nil
    }
    return GateSettings.TLS.Files(certificateFile: certificate, keyFile: key)
  }
}
