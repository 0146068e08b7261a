internal import ByteCoding
public import Logging

/// `/v1/upstreams`: the servers of the routes. Works without the store.
public struct UpstreamResource: AdminResource {
  private let health: UpstreamHealth
  private let logger: Logger

  public init(_ health: UpstreamHealth, logger: Logger) {
    self.health = health
    self.logger = logger
  }

  public var operations: [AdminOperation] {
    [
      AdminOperation(
        "GET", "/v1/upstreams", "Lists the servers of the routes.", answers: AdminAnswers(200, schema: .upstreamListing)
      ) { _ throws(AdminError) in .json(UpstreamListing(upstreams: health.listing)) },
      AdminOperation(
        "POST", "/v1/upstreams/drain", "Sends a server no new sessions; open ones stay.",
        parameters: [AdminParameter("upstream"), AdminParameter("route")],
        answers: AdminAnswers(200, schema: .upstreamServer, refusals: [404, 409])
      ) { request throws(AdminError) in .json(try set(isDrained: true, request)) },
      AdminOperation(
        "POST", "/v1/upstreams/resume", "Sends a drained server sessions again.",
        parameters: [AdminParameter("upstream"), AdminParameter("route")],
        answers: AdminAnswers(200, schema: .upstreamServer, refusals: [404, 409])
      ) { request throws(AdminError) in .json(try set(isDrained: false, request)) },
    ]
  }

  /// The route may be left out if only one has the server.
  private func set(isDrained: Bool, _ request: AdminRequest) throws(AdminError) -> UpstreamServerState {
    guard let upstream = request.parameter("upstream"), !upstream.isEmpty else {
      throw .malformedParameter("upstream", rule: "must name a server, as in the configuration")
    }
    let named = health.listing.filter { server in
      server.upstream.hasSameBytes(as: upstream)
        && (request.parameter("route").map { server.route?.hasSameBytes(as: $0) == true } ?? true)
    }
    guard named.count <= 1 else { throw .ambiguousUpstream(routes: named.compactMap(\.route)) }
    guard let only = named.first, let route = only.route else { throw .unknownUpstream }
    guard let pool = health.pool(of: route) else {
      // The only server of a route is never drained.
      guard isDrained else { return only }
      throw .lastUpstream
    }
    do throws(UpstreamPool.DrainError) {
      var state = try pool.setDrained(isDrained, upstream)
      state.route = route
      var fields = OperatorIdentity.fields(of: request)
      (fields["route"], fields["upstream"]) = ("\(route)", "\(state.upstream)")
      logger.notice(isDrained ? "upstream drained by operator" : "upstream resumed by operator", metadata: fields)
      return state
    } catch {
      switch error {
      case .unknown: throw .unknownUpstream
      case .isLast: throw .lastUpstream
      }
    }
  }
}

extension UpstreamHealth {
  /// The servers of all routes.
  fileprivate var listing: [UpstreamServerState] {
    records.flatMap { route, health in
      let servers =
        pool(of: route)?.servers ?? [
          UpstreamServerState(
            upstream: health.upstream, condition: health.isFailing ? .failing : .available,
            failures: health.recent.failures)
        ]
      return servers.map { server in
        var server = server
        server.route = route
        return server
      }
    }
  }
}
