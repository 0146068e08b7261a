public import ConsoleFrame
internal import LocalBrowser
internal import Locking
public import Transport

/// Answers the requests of browsers with the pages of a console.
public final class ConsoleResponder: RequestResponder {
  /// Where the console listens, and the site that answers.
  private struct Place: Sendable {
    let address: SocketAddress
    let site: ConsoleSite
  }

  /// How many connections are remembered whose user is known.
  private static let mostKnown = 64

  /// `nil` until the port is known.
  private let place = LockedValue<Place?>(nil)
  private let known = LockedValue<[(peer: SocketAddress, user: PeerUser, at: ContinuousClock.Instant)]>([])

  public init() {}

  /// Serves `site` at `address` from now on.
  public func serve(_ site: ConsoleSite, at address: SocketAddress) {
    place.withLock { $0 = Place(address: address, site: site) }
  }

  /// Leaves the event loop at once: pages wait for the gate.
  public func respond(to request: Request, from peer: Peer) async -> Disposition {
    guard request.upgrade == nil else { return .respond(Self.refusal(404, "There is no WebSocket here.")) }
    guard let place = place.withLock(\.self) else { return .respond(Self.refusal(503, "The console starts.")) }
    return await withTaskExecutorPreference(globalConcurrentExecutor) {
      let query = request.target.firstIndex(of: "?").map { String(request.target[request.target.index(after: $0)...]) }
      let answer = await place.site.answer(
        to: ConsoleRequest(
          method: request.method, path: request.path, query: query,
          fields: request.headers.fields.map { ($0.name, $0.value) }, body: request.body),
        from: user(of: peer.address, at: place.address))
      return .respond(
        Response(
          status: answer.status, headers: HeaderFields(answer.fields.map { .init(name: $0.name, value: $0.value) }),
          body: answer.body))
    }
  }

  public func response(to fault: RequestError, of headers: HeaderFields?, id: String, from peer: Peer) -> Response {
    switch fault {
    case .bodyTooLarge: Self.refusal(413, "The form is too large.")
    case .headTooLarge: Self.refusal(431, "The header is too large.")
    case .tooSlow: Self.refusal(408, "The request did not arrive in time.")
    case .malformedHead, .unacceptableField, .malformedBody, .malformedUpgrade, .unsupportedWebSocketVersion:
      Self.refusal(400, "The request is malformed.")
    }
  }

  private static func refusal(_ status: Int, _ text: String) -> Response {
    Response(
      status: status,
      headers: HeaderFields([
        .init(name: "Content-Type", value: "text/plain; charset=utf-8"),
        .init(name: "Cache-Control", value: "no-store"),
      ]), body: Array((text + "\n").utf8), closes: true)
  }

  /// Returns the user whose socket has the address `peer`. The kernel's table can be long, so that the answer is kept
  /// for some seconds: a browser sends several requests over one connection.
  private func user(of peer: SocketAddress, at own: SocketAddress) -> PeerUser {
    let now = ContinuousClock.now
    if let known = known.withLock({ $0.last { $0.peer == peer && now - $0.at < .seconds(10) } }) { return known.user }
    guard let ends = Self.end(own).flatMap({ own in Self.end(peer).map { (own: own, peer: $0) } }) else {
      return .unknown
    }
    let user = PeerUser(own: ends.own, peer: ends.peer)
    known.withLock { known in
      if known.count >= Self.mostKnown { known.removeFirst() }
      known.append((peer, user, now))
    }
    return user
  }

  private static func end(_ address: SocketAddress) -> PeerUser.Endpoint? {
    switch address {
    case .ipv4(let bytes, let port), .ipv6(let bytes, let port): PeerUser.Endpoint(address: bytes, port: port)
    case .unix: nil
    }
  }
}
