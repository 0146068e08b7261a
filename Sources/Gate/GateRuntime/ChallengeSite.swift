internal import ACME
internal import GateService
internal import Transport

/// Answers at the port for HTTP-01: the key authorizations of challenges (RFC 8555 section 8.3), and for every other
/// request a redirect to `https`.
///
/// A redirect leads only to a name of the certificate, so that a foreign name in `Host` is no way to send a client
/// elsewhere.
struct ChallengeSite: RequestResponder {
  let managed: ManagedCertificates

  private static let folder = "/.well-known/acme-challenge/"

  func respond(to request: Request, from peer: Peer) async -> Disposition { .respond(answer(to: request)) }

  func respondAtOnce(to request: Request, from peer: Peer) -> Disposition? { .respond(answer(to: request)) }

  func response(to fault: RequestError, of headers: HeaderFields?, id: String, from peer: Peer) -> Response {
    Self.refusal(400)
  }

  private func answer(to request: Request) -> Response {
    guard request.path.hasPrefix(Self.folder) else { return redirect(request) }
    guard ["GET", "HEAD"].contains(request.method) else {
      return Response(status: 405, headers: HeaderFields([.init(name: "Allow", value: "GET, HEAD")]), closes: true)
    }
    guard let text = managed.keyAuthorization(of: String(request.path.dropFirst(Self.folder.count))) else {
      return Self.refusal(404)
    }
    return Response(
      status: 200, headers: HeaderFields([.init(name: "Content-Type", value: "application/octet-stream")]),
      body: Array(text.utf8))
  }

  /// 308 keeps the method. The target is as the client sent it.
  private func redirect(_ request: Request) -> Response {
    guard let host = request.headers.first("Host"), request.target.hasPrefix("/"),
      let name = managed.servedHost(in: host)
    else { return Self.refusal(421) }
    return Response(
      status: 308, headers: HeaderFields([.init(name: "Location", value: "https://\(name)\(request.target)")]))
  }

  /// The connection of a client that asks for something else has no further use.
  private static func refusal(_ status: Int) -> Response { Response(status: status, closes: true) }
}
