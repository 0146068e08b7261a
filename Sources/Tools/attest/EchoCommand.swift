internal import ArgumentParser
internal import Commands
internal import Glibc
internal import Transport
internal import TransportEngine

struct EchoCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "echo",
    abstract: "Run a WebSocket server that sends every message back, as a backend for experiments.",
    discussion: """
      Without TLS, for loopback. SIGINT and SIGTERM stop it. Example:
        attest echo --listen 127.0.0.1:8080
      """)

  @OptionGroup var options: GlobalOptions

  @Option(help: ArgumentHelp("The address to listen on; port 0 selects a free port.", valueName: "address:port"))
  var listen = "127.0.0.1:8080"

  func run() async throws {
    let address = try ListenAddress.parse(listen)
    let signals = ClosingSignals {}
    defer { signals.stop() }
    let engine: Engine
    do throws(Engine.StartError) {
      engine = try Engine(listeningAt: address, loops: 1, tls: nil, responder: EchoResponder())
    } catch {
      throw Failure(
        .cannotBind, "\(error)", hint: error.isAddressInUse ? "another port: --listen 127.0.0.1:0" : nil)
    }
    let url = "ws://\(engine.address)/"
    if options.json { JSONOutput.print(["url": url]) } else { StandardOutput.write("\(url)\n") }
    await signals.received()
    await engine.drain(.goingAway, reason: "", timeout: .seconds(2))
    engine.stop()
  }
}

/// The address at which a server listens.
enum ListenAddress {
  /// The address in `text`: `127.0.0.1:8080` or `[::1]:8080`.
  static func parse(_ text: String) throws(Failure) -> SocketAddress {
    let hint = "an address is like 127.0.0.1:8080 or [::1]:8080"
    guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]) else {
      throw Failure(.usage, "not an address to listen at: \(text)", hint: hint)
    }
    let host = text[..<colon]
    var ipv4 = in_addr()
    if inet_pton(AF_INET, String(host), &ipv4) == 1 {
      return .ipv4(withUnsafeBytes(of: &ipv4) { Array($0) }, port: port)
    }
    var ipv6 = in6_addr()
    guard host.hasPrefix("["), host.hasSuffix("]"), inet_pton(AF_INET6, String(host.dropFirst().dropLast()), &ipv6) == 1
    else { throw Failure(.usage, "not an address to listen at: \(text)", hint: hint) }
    return .ipv6(withUnsafeBytes(of: &ipv6) { Array($0) }, port: port)
  }
}

/// Sends every message back.
struct EchoResponder: RequestResponder {
  func respond(to request: Request, from peer: Peer) async -> Disposition {
    guard request.upgrade != nil else {
      return .respond(Self.text(426, "this is a WebSocket server", [("Upgrade", "websocket")]))
    }
    return .converse(EchoSession())
  }

  func response(to fault: RequestError, of headers: HeaderFields?, id: String, from peer: Peer) -> Response {
    switch fault {
    case .malformedHead(let rule), .unacceptableField(let rule), .malformedBody(let rule), .malformedUpgrade(let rule):
      Self.text(400, rule)
    case .headTooLarge(let rule): Self.text(431, rule)
    case .bodyTooLarge(let limit): Self.text(413, "more than \(limit) bytes")
    case .unsupportedWebSocketVersion: Self.text(426, "version 13", [("Sec-WebSocket-Version", "13")])
    case .tooSlow: Self.text(408, "too slow")
    }
  }

  private static func text(_ status: Int, _ text: String, _ fields: [(String, String)] = []) -> Response {
    var headers = HeaderFields([.init(name: "Content-Type", value: "text/plain; charset=utf-8")])
    for (name, value) in fields { headers.append(name, value) }
    return Response(status: status, headers: headers, body: Array((text + "\n").utf8))
  }
}

/// One socket of the echo server. The engine stops reading while too much waits to be written.
final class EchoSession: WebSocketSession {
  let subprotocol: String? = nil
  let maxMessage = 64 << 20
  private let socket = Shared<WebSocketChannel?>(nil)

  func opened(_ socket: WebSocketChannel) { self.socket.set(socket) }
  func received(_ message: WebSocketMessage) { socket.get()?.send(message) }
  func closed(code: UInt16?, reason: String) { socket.set(nil) }
}
