public import Commands
public import Transport

/// Answers the requests of browsers with the pages of a console.
public final class ConsoleResponder: RequestResponder {
  private let site: @Sendable () -> ConsoleSite?
  private let admission: ConsoleAdmission?

  /// - Parameter admission: Has the site that answers.
  public init(_ admission: ConsoleAdmission) {
    site = { admission.site }
    self.admission = admission
  }

  /// Creates a responder for a console over TLS, whose site asks for a session and not for the user of a connection.
  public init(_ site: ConsoleSite) {
    self.site = { site }
    admission = nil
  }

  /// Leaves the event loop at once: pages wait for the gate.
  public func respond(to request: Request, from peer: Peer) async -> Disposition {
    guard request.upgrade == nil else { return .respond(Self.refusal(404, "There is no WebSocket here.")) }
    guard let site = site() else { return .respond(Self.refusal(503, "The console starts.")) }
    return await withTaskExecutorPreference(globalConcurrentExecutor) {
      let query = request.target.firstIndex(of: "?").map { String(request.target[request.target.index(after: $0)...]) }
      let answer = await site.answer(
        to: ConsoleRequest(
          method: request.method, path: request.path, query: query,
          fields: request.headers.fields.map { ($0.name, $0.value) }, body: request.body,
          certificate: peer.verifiedCertificate.map {
            ConsoleCertificate(subject: $0.subject, expiresAt: $0.expiresAt)
          },
          address: peer.address.host))
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

  /// Whether a new connection from `peer` belongs to a user that the site serves. For `Engine.init(admits:)`: the answer
  /// belongs to the connection and not to its address, which another user's next connection can have.
  public func admits(_ peer: SocketAddress) -> Bool {
    guard let admission else { return true }
    return Self.end(peer).map(admission.admits) ?? false
  }

  /// Returns the end of a connection of the loopback; `nil` for a Unix socket.
  public static func end(_ address: SocketAddress) -> PeerUser.Endpoint? {
    switch address {
    case .ipv4(let bytes, let port), .ipv6(let bytes, let port): PeerUser.Endpoint(address: bytes, port: port)
    case .unix: nil
    }
  }
}
