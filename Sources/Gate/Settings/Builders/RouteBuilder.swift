internal import ConfigurationEngine

extension SettingsBuilder {
  mutating func routes() -> [GateSettings.Route] {
    var routes: [GateSettings.Route] = []
    let list = SettingPath.root["routes"]
    for index in elementIndices(of: list) {
      let upstream = upstream(index)
      guard let routePath = value(Keys.routePath, index) else { continue }
      if routes.contains(where: { $0.path == routePath }) {
        refuse(path(Keys.routePath, index), "the route \(routePath) is configured twice")
      }
      let audience = value(Keys.routeAudience, index)
      let subprotocol = value(Keys.routeSubprotocol, index)
      let origins = elements(Keys.routeOrigins, index)
      guard let upstream, let forward = value(Keys.forward, index),
        let maxResponseHead = value(Keys.maxResponseHead, index)
      else { continue }
      if case .tcp = upstream, forward == .all {
        refuse(path(Keys.forward, index), "tcp:// cannot forward ordinary requests: they need an HTTP upstream")
      }
      if case .tcp = upstream, audience != nil {
        refuse(path(Keys.routeAudience, index), "has no effect for tcp://: this upstream gets no identity assertion")
      }
      if case .tcp = upstream {
      } else if subprotocol != nil {
        refuse(path(Keys.routeSubprotocol, index), "has an effect only for tcp://: other upstreams choose themselves")
      }
      routes.append(
        GateSettings.Route(
          path: routePath, upstream: upstream, forward: forward, audience: audience, subprotocol: subprotocol,
          maxResponseHead: maxResponseHead, origins: origins))
    }
    if entries.containers[list] != nil, entries.indices(of: list).isEmpty, !entries.isFaulty(list) {
      warn(list, "empty list: the gate refuses every session")
    }
    return routes
  }

  private mutating func upstream(_ index: Int) -> GateSettings.Upstream? {
    let address = required(Keys.upstream, index)
    let caFile = value(Keys.upstreamCA, index)
    let serverName = value(Keys.upstreamName, index)
    check(.certificates, Keys.upstreamCA, index)
    guard let address else { return nil }
    if address.scheme != .wss, caFile != nil || serverName != nil {
      refuse(
        path(Keys.upstreamCA, index).parent, "has no effect for \(address.scheme.rawValue): only wss:// uses TLS")
    }
    return switch address.scheme {
    case .ws: .webSocket(host: address.host, port: address.port)
    case .wss: .secureWebSocket(host: address.host, port: address.port, caFile: caFile, serverName: serverName)
    case .unix: .unix(path: address.host)
    case .tcp: .tcp(host: address.host, port: address.port)
    }
  }
}
