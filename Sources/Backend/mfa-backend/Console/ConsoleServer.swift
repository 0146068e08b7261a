internal import Commands
internal import ConsoleFrame
internal import Glibc
internal import Locking
internal import MFAService
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix

/// Serves a console on a port of the loopback.
///
/// One request per connection, bounded in bytes before it is parsed, and one deadline for the whole exchange: a browser
/// that sends slowly or never reads ends with it.
struct ConsoleServer: Sendable {
  /// The maximum bytes of a request, head and form together.
  static let mostBytes = 16 << 10
  /// The maximum number of connections.
  static let mostConnections = 32
  /// The time for the request to arrive.
  static let requestTime = TimeAmount.seconds(10)
  /// The time for the whole exchange. Longer than the deadline of a request to the backend.
  static let exchangeTime = TimeAmount.seconds(75)

  private static let host = "127.0.0.1"
  private let group: MultiThreadedEventLoopGroup
  private let channel: any Channel
  let port: UInt16

  /// Listens, and refuses every connection until `admission` has a site.
  ///
  /// - Parameter port: The port; 0 for a free one.
  static func start(port: UInt16, _ admission: ConsoleAdmission) async throws(Failure) -> ConsoleServer {
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    let connections = LockedValue(0)
    do {
      let channel = try await ServerBootstrap(group: group)
        .serverChannelOption(.backlog, value: 64)
        .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
        .childChannelInitializer { channel in
          channel.eventLoop.makeCompletedFuture { try open(channel, admission, connections) }
        }
        .bind(host: host, port: Int(port)).get()
      guard let bound = channel.localAddress?.port.flatMap(UInt16.init(exactly:)) else {
        throw IOError(errnoCode: EADDRNOTAVAIL, reason: "bind")
      }
      return ConsoleServer(group: group, channel: channel, port: bound)
    } catch {
      try? await group.shutdownGracefully()
      let isInUse = (error as? IOError)?.errnoCode == EADDRINUSE
      throw Failure(
        .cannotBind, "the console cannot listen at \(host):\(port): \(error)",
        hint: isInUse ? "name another port: --port 0 selects a free one" : "name another port with --port")
    }
  }

  /// Where the console listens.
  var endpoint: PeerUser.Endpoint { PeerUser.Endpoint(address: [127, 0, 0, 1], port: port) }

  func stop() async {
    try? await channel.close()
    try? await group.shutdownGracefully()
  }

  /// The connection is refused without an answer.
  private struct Refused: Error {}

  private static func open(
    _ channel: any Channel, _ admission: ConsoleAdmission, _ connections: LockedValue<Int>
  ) throws {
    // First the user: connections of others must not be counted.
    guard let peer = channel.remoteAddress.flatMap(PeerUser.Endpoint.init(ofIPv4:)), admission.admits(peer),
      connections.withLock({ $0 }) < mostConnections
    else { throw Refused() }
    let pipeline = channel.pipeline.syncOperations
    try pipeline.addHandler(ByteBudget(mostBytes))
    try pipeline.configureHTTPServerPipeline(withPipeliningAssistance: false, withErrorHandling: false)
    try pipeline.addHandler(ConsoleConnection(admission, connections))
  }
}

extension PeerUser.Endpoint {
  fileprivate init?(ofIPv4 address: SocketAddress) {
    guard let port = address.port.flatMap(UInt16.init(exactly:)), let text = address.ipAddress else { return nil }
    let bytes = text.split(separator: ".").compactMap { UInt8($0) }
    guard bytes.count == 4 else { return nil }
    self.init(address: bytes, port: port)
  }
}

/// One connection to the console, with one request.
private final class ConsoleConnection: ChannelInboundHandler, Sendable {
  typealias InboundIn = HTTPServerRequestPart
  typealias OutboundOut = HTTPServerResponsePart

  private struct State {
    var head: HTTPRequestHead?
    var body: [UInt8] = []
    /// Whether the request is complete or was refused.
    var isDecided = false
    var timers: [Scheduled<Void>] = []
  }

  private let admission: ConsoleAdmission
  private let connections: LockedValue<Int>
  private let state = LockedValue(State())

  init(_ admission: ConsoleAdmission, _ connections: LockedValue<Int>) {
    (self.admission, self.connections) = (admission, connections)
  }

  func channelActive(context: ChannelHandlerContext) {
    connections.withLock { $0 += 1 }
    let channel = context.channel
    let slow = channel.eventLoop.scheduleTask(in: ConsoleServer.requestTime) {
      self.refuse(408, "The request did not arrive in time.", on: channel)
    }
    let end = channel.eventLoop.scheduleTask(in: ConsoleServer.exchangeTime) { channel.close(promise: nil) }
    state.withLock { $0.timers = [slow, end] }
    context.fireChannelActive()
  }

  func channelInactive(context: ChannelHandlerContext) {
    connections.withLock { $0 -= 1 }
    for timer in state.withLock(\.timers) { timer.cancel() }
    context.fireChannelInactive()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .head(let head): state.withLock { state in if state.head == nil { state.head = head } }
    // The budget bounds it.
    case .body(let bytes): state.withLock { $0.body += Array(bytes.readableBytesView) }
    case .end:
      guard let (head, body) = decide() else { return }
      let channel = context.channel
      guard let target = Target(head.uri) else { return write(400, "The request is malformed.", on: channel) }
      guard let site = admission.site else { return write(503, "The console starts.", on: channel) }
      let request = ConsoleRequest(
        method: head.method.rawValue, path: target.path, query: target.query,
        fields: head.headers.map { ($0.name, $0.value) }, body: body)
      Task {
        let answer = await site.answer(to: request)
        Self.write(answer.status, answer.fields, head.method == .HEAD ? [] : answer.body, on: channel)
      }
    }
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    switch error {
    case is ByteBudget.Exceeded: refuse(413, "The request is too large.", on: context.channel)
    case is HTTPParserError: refuse(400, "The request is malformed.", on: context.channel)
    default: context.close(promise: nil)
    }
  }

  /// Takes the request for its one answer; `nil` if there is one already.
  private func decide() -> (HTTPRequestHead, [UInt8])? {
    state.withLock { state in
      guard !state.isDecided, let head = state.head else { return nil }
      state.isDecided = true
      return (head, state.body)
    }
  }

  /// Answers a request that is not complete, unless it is answered already.
  private func refuse(_ status: Int, _ text: String, on channel: any Channel) {
    let isFirst = state.withLock { state in
      defer { state.isDecided = true }
      return !state.isDecided
    }
    if isFirst { write(status, text, on: channel) }
  }

  private func write(_ status: Int, _ text: String, on channel: any Channel) {
    Self.write(
      status, [("Content-Type", "text/plain; charset=utf-8"), ("Cache-Control", "no-store")],
      Array((text + "\n").utf8), on: channel)
  }

  /// The time for a client to read an answer before the connection is reset.
  private static let lingering = TimeAmount.seconds(1)

  /// Writes an answer, ends the output, and closes a little later: a close with unread bytes would be a reset, which can
  /// destroy the answer on its way.
  private static func write(
    _ status: Int, _ fields: [(name: String, value: String)], _ body: [UInt8], on channel: any Channel
  ) {
    var headers = HTTPHeaders(fields.map { ($0.name, $0.value) })
    headers.add(name: "Content-Length", value: "\(body.count)")
    headers.add(name: "Connection", value: "close")
    let head = HTTPResponseHead(
      version: .http1_1, status: HTTPResponseStatus(statusCode: status), headers: headers)
    channel.write(HTTPServerResponsePart.head(head), promise: nil)
    if !body.isEmpty {
      channel.write(HTTPServerResponsePart.body(.byteBuffer(ByteBuffer(bytes: body))), promise: nil)
    }
    channel.writeAndFlush(HTTPServerResponsePart.end(nil)).whenComplete { _ in
      channel.close(mode: .output, promise: nil)
      channel.eventLoop.scheduleTask(in: lingering) { channel.close(promise: nil) }
    }
  }
}

/// The path and the query of a request.
private struct Target {
  let path: String
  let query: String?

  /// - Returns: `nil` for another form than the one of a path from `/` on, and for a path that is not in its normal form:
  ///   letters, digits and `/-._`, without empty and dot segments. The console has no other paths.
  init?(_ uri: String) {
    let parts = uri.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    guard let path = parts.first, path.utf8.first == UInt8(ascii: "/"), path.utf8.allSatisfy(Self.isPlain) else {
      return nil
    }
    let segments = path.split(separator: "/", omittingEmptySubsequences: false).dropFirst()
    guard path == "/" || segments.allSatisfy({ !$0.isEmpty && $0 != "." && $0 != ".." }) else { return nil }
    self.path = String(path)
    query = parts.count == 2 ? String(parts[1]) : nil
  }

  private static func isPlain(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"):
      true
    default: Array("/-._".utf8).contains(byte)
    }
  }
}
