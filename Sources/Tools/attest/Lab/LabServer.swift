internal import ByteCoding
internal import Foundation
internal import Locking
internal import Transport

/// Serves the page of the device lab to browsers on this machine.
///
/// A page of another site cannot use it: requests with another `Host` or `Origin` are refused, and the socket expects the
/// token, which is in the fragment of the printed URL and so in no request.
final class LabServer: RequestResponder {
  /// The hosts of this server: names of the loopback with the port.
  private let hosts = LockedValue<[String]>([])
  private let token: String
  private let lab: LabSession
  private let pages = LockedValue<LabSocket?>(nil)

  init(lab: LabSession, token: String) {
    self.lab = lab
    self.token = token
  }

  /// Sets the port, which is known when the server listens.
  func setPort(_ port: UInt16) {
    hosts.withLock { $0 = ["127.0.0.1", "localhost", "[::1]"].map { "\($0):\(port)" } }
  }

  func respond(to request: Request, from peer: Peer) async -> Disposition {
    guard case .once(let host) = request.headers.only("Host"), hosts.withLock({ $0.contains(host.lowercased()) }) else {
      return .respond(Self.text(421, "the device lab answers at the address that it printed, and at no other host"))
    }
    switch (request.path, request.upgrade != nil) {
    case ("/", false):
      guard request.method == "GET" || request.method == "HEAD" else {
        return .respond(Self.text(405, "GET is expected", [("Allow", "GET, HEAD")]))
      }
      return .respond(Self.page(hasBody: request.method == "GET"))
    case ("/lab", true):
      guard case .once(let origin) = request.headers.only("Origin"),
        origin.lowercased() == "http://\(host.lowercased())"
      else { return .respond(Self.text(403, "the socket of the device lab is for its own page")) }
      return .converse(LabSocket(lab: lab, token: token, pages: pages))
    case ("/lab", false): return .respond(Self.text(426, "this is a WebSocket", [("Upgrade", "websocket")]))
    default: return .respond(Self.text(404, "there is only the page at /"))
    }
  }

  func response(to fault: RequestError, of headers: HeaderFields?, id: String, from peer: Peer) -> Response {
    EchoResponder().response(to: fault, of: headers, id: id, from: peer)
  }

  private static func page(hasBody: Bool) -> Response {
    Response(
      status: 200,
      headers: fields("text/html; charset=utf-8", [("Content-Security-Policy", LabPage.policy)]),
      body: hasBody ? Array(LabPage.document.utf8) : [])
  }

  private static func text(_ status: Int, _ text: String, _ further: [(String, String)] = []) -> Response {
    Response(status: status, headers: fields("text/plain; charset=utf-8", further), body: Array((text + "\n").utf8))
  }

  private static func fields(_ type: String, _ further: [(String, String)]) -> HeaderFields {
    var headers = HeaderFields([
      .init(name: "Content-Type", value: type), .init(name: "Cache-Control", value: "no-store"),
      .init(name: "X-Content-Type-Options", value: "nosniff"), .init(name: "Referrer-Policy", value: "no-referrer"),
      .init(name: "Cross-Origin-Opener-Policy", value: "same-origin"),
      .init(name: "Cross-Origin-Resource-Policy", value: "same-origin"),
    ])
    for (name, value) in further { headers.append(name, value) }
    return headers
  }
}

/// The socket of one page. The newest page that knows the token has the lab; the page before is closed by name.
final class LabSocket: WebSocketSession {
  /// The close code for a page without the token.
  static let unknownToken = CloseCode(4001)
  /// The close code for a page whose lab is open in another tab.
  static let replaced = CloseCode(4002)

  let subprotocol: String? = nil
  let maxMessage = 64 << 10

  private let lab: LabSession
  private let token: String
  private let pages: LockedValue<LabSocket?>
  private let socket = Shared<WebSocketChannel?>(nil)
  private let inbox: AsyncStream<String>
  private let arrivals: AsyncStream<String>.Continuation

  init(lab: LabSession, token: String, pages: LockedValue<LabSocket?>) {
    self.lab = lab
    self.token = token
    self.pages = pages
    (inbox, arrivals) = AsyncStream.makeStream(of: String.self, bufferingPolicy: .bufferingOldest(256))
  }

  func opened(_ socket: WebSocketChannel) {
    self.socket.set(socket)
    Task { await serve(socket) }
  }

  func received(_ message: WebSocketMessage) {
    guard case .text(let text) = message else {
      socket.get()?.send(.text(#"{"error":"not an event: binary"}"#))
      return
    }
    if case .dropped = arrivals.yield(text) {
      socket.get()?.send(.text(#"{"error":"too many events at once: the last one was dropped"}"#))
    }
  }

  func closed(code: UInt16?, reason: String) {
    socket.set(nil)
    arrivals.finish()
  }

  /// Takes the messages of the page, one after another.
  private func serve(_ socket: WebSocketChannel) async {
    var messages = inbox.makeAsyncIterator()
    guard let first = await messages.next() else { return }
    guard isHello(first) else {
      socket.close(Self.unknownToken, reason: "open the URL that attest lab has printed")
      return
    }
    let former = pages.withLock { pages in
      defer { pages = self }
      return pages
    }
    former?.socket.exchange(nil)?.close(Self.replaced, reason: "this lab is open in another tab")
    let page = await lab.open { socket.send(.text($0)) }
    while let message = await messages.next() {
      // A page that was replaced has no say any more.
      guard self.socket.get() != nil else { break }
      await lab.receive(message)
    }
    await lab.close(page)
    pages.withLock { if $0 === self { $0 = nil } }
  }

  private struct Hello: Decodable {
    let event: String
    let value: String
  }

  private func isHello(_ text: String) -> Bool {
    guard let hello = try? JSONDecoder().decode(Hello.self, from: Data(text.utf8)), hello.event == "hello" else {
      return false
    }
    return constantTimeEqual(hello.value.utf8, token.utf8)
  }
}
