internal import ByteCoding
internal import Cryptography
internal import Commands
internal import GateRuntime
internal import Transport
internal import TransportEngine

/// Serves the authority of a development gate to phones that do not trust it yet: over plain HTTP, on a port of its own,
/// one profile at a random path, and nothing else. A phone cannot fetch it from the gate, whose port speaks TLS alone.
///
/// The profile has no secret. On the way to the phone it can be replaced, so that a person compares the fingerprint.
final class ProfileServer: Sendable {
  private let engine: Engine
  private let path: String

  /// Starts to serve.
  ///
  /// - Parameter fetched: Called with the address of a client that got the profile.
  init(
    of authority: Certificate, at address: SocketAddress, fetched: @escaping @Sendable (SocketAddress) -> Void
  ) throws(Failure) {
    path = "/\(Hex.encode(SecureRandom.bytes(8)))/sallyport.mobileconfig"
    let profile = ConfigurationProfile(developmentAuthority: authority).propertyList
    var limits = EngineLimits()
    limits.maxBody = 0
    do throws(Engine.StartError) {
      engine = try Engine(
        listeningAt: address, loops: 1, tls: nil,
        responder: ProfileResponder(path: path, profile: Array(profile.utf8), fetched: fetched), limits: limits)
    } catch {
      throw Failure(
        .cannotBind, "the profile cannot be served at \(error)",
        hint: "name another port with --profile-port; 0 selects any free one")
    }
  }

  /// The profile's URL.
  func url(host: DevHost) -> String { "http://\(host.urlText):\(engine.address.port)\(path)" }

  /// Stops serving.
  func stop() { engine.stop() }
}

/// Answers with one file at one path.
private struct ProfileResponder: RequestResponder {
  let path: String
  let profile: [UInt8]
  let fetched: @Sendable (SocketAddress) -> Void

  func respond(to request: Request, from peer: Peer) async -> Disposition {
    guard request.path == path, request.method == "GET" || request.method == "HEAD" else {
      return .respond(Self.text(404, "there is nothing here"))
    }
    if request.method == "GET" { fetched(peer.address) }
    let headers = HeaderFields([
      .init(name: "Content-Type", value: "application/x-apple-aspen-config"),
      .init(name: "Cache-Control", value: "no-store"),
    ])
    return .respond(Response(status: 200, headers: headers, body: profile))
  }

  func response(to fault: RequestError, of headers: HeaderFields?, id: String, from peer: Peer) -> Response {
    Self.text(400, "the request is malformed")
  }

  private static func text(_ status: Int, _ text: String) -> Response {
    let type = HeaderFields.Field(name: "Content-Type", value: "text/plain")
    return Response(status: status, headers: HeaderFields([type]), body: Array((text + "\n").utf8), closes: true)
  }
}
