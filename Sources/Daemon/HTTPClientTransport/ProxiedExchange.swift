internal import Wire
internal import Foundation
internal import Locking
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix
internal import NIOSSL
internal import NIOTLS

/// Exchanges with servers through a proxy, each on a connection of its own.
///
/// AsyncHTTPClient opens a tunnel for `http`, too, which many proxies allow for port 443 only; it does not report why a
/// proxy refuses, and does not speak TLS to a proxy.
final class ProxiedExchange: Sendable {
  private let options: HTTPClientTransport.Options
  private let tls: TLSConfiguration
  private let rootsOfProxies: NIOSSLTrustRoots
  /// The roots of the system are read once.
  private let loaded = LockedValue<(server: NIOSSLContext, proxy: NIOSSLContext)?>(nil)

  /// - Parameters:
  ///   - tls: For servers.
  ///   - rootsOfProxies: The roots to trust for proxies.
  init(_ options: HTTPClientTransport.Options, tls: TLSConfiguration, rootsOfProxies: NIOSSLTrustRoots = .default) {
    self.options = options
    self.tls = tls
    self.rootsOfProxies = rootsOfProxies
  }

  /// Sends `request` through `proxy`. The caller bounds the time; a cancelled exchange closes its connection.
  ///
  /// - Throws: `TransportError`; `.unreachable` or `.untrusted` only if nothing of the request reached the server.
  func send(_ request: HTTPRequest, through proxy: ForwardProxy) async throws(TransportError) -> HTTPResponse {
    let target = try ProxiedTarget(request, through: proxy)
    let loop = MultiThreadedEventLoopGroup.singleton.any()
    let answer = loop.makePromise(of: HTTPResponse.self)
    let state = ExchangeState(answer: answer)
    // As without a proxy: the time for the connection with its handshakes, so that a proxy that does not answer leaves
    // no doubt whether the server received the request.
    let limit = TimeAmount(min(options.connectTime, options.exchangeTime / 2))
    let timer = loop.scheduleTask(in: limit) {
      if state.step != .request { state.fail(ChannelError.connectTimeout(limit)) }
    }
    defer { timer.cancel() }
    do {
      let contexts = try contexts()
      let channel = try await ClientBootstrap(group: loop)
        .connectTimeout(limit)
        .channelInitializer { [options] channel in
          channel.eventLoop.makeCompletedFuture {
            let handlers = channel.pipeline.syncOperations
            if proxy.scheme == .https {
              let name = HTTPClientTransport.isAddress(proxy.host) ? nil : proxy.host
              try handlers.addHandler(NIOSSLClientHandler(context: contexts.proxy, serverHostname: name))
            }
            let server = ServerStage(target, options: options, context: contexts.server, state: state)
            if let tunnel = target.tunnel {
              try handlers.addHandler(TunnelStage(tunnel, then: server, state: state))
            } else {
              try server.add(to: handlers)
            }
          }
        }
        .connect(host: proxy.host, port: Int(proxy.port)).get()
      answer.futureResult.whenComplete { _ in channel.close(mode: .all, promise: nil) }
      let response = try await withTaskCancellationHandler {
        try await answer.futureResult.get()
      } onCancel: {
        channel.close(mode: .all, promise: nil)
      }
      guard response.status != 407 || target.tunnel != nil else {
        throw TransportError.unreachable(
          "the proxy \(proxy) answered with status 407: \(proxy.adviceForCredentials)")
      }
      return response
    } catch {
      state.fail(error)
      throw Self.error(error, at: state.step, of: proxy)
    }
  }

  private func contexts() throws -> (server: NIOSSLContext, proxy: NIOSSLContext) {
    try loaded.withLock { loaded throws in
      if let loaded { return loaded }
      var ofProxies = TLSConfiguration.makeClientConfiguration()
      ofProxies.minimumTLSVersion = .tlsv12
      ofProxies.trustRoots = rootsOfProxies
      let made = (server: try NIOSSLContext(configuration: tls), proxy: try NIOSSLContext(configuration: ofProxies))
      loaded = made
      return made
    }
  }

  /// Translates an error. Before the request is sent, the proxy or the server was not reached.
  private static func error(_ error: any Error, at step: ExchangeState.Step, of proxy: ForwardProxy) -> TransportError {
    if let error = error as? TransportError { return error }
    if let error = error as? ProxyTunnelError { return .unreachable("\(error)") }
    let translated = TransportError(error)
    switch (step, translated) {
    case (.connection, .untrusted(let reason)): return .untrusted("the proxy \(proxy): \(reason)")
    case (.connection, .unreachable(let reason)), (.connection, .lost(let reason)),
      (.connection, .malformed(let reason)):
      return .unreachable("the proxy \(proxy): \(reason)")
    case (.handshake, .lost(let reason)): return .unreachable("the tunnel of the proxy \(proxy): \(reason)")
    case (.handshake, _), (.request, _), (.connection, .tooLarge): return translated
    }
  }
}

/// The connection ended before the exchange was complete.
struct ConnectionEnded: Error, CustomStringConvertible {
  var description: String { "the connection was closed" }
}

/// A request as it is written through a proxy.
private struct ProxiedTarget: Sendable {
  let request: HTTPRequest
  let head: HTTPRequestHead
  /// The name that the server's certificate must prove.
  let name: String
  /// `nil` for `http`, where the proxy itself reads the request.
  let tunnel: ProxyTunnel?

  init(_ request: HTTPRequest, through proxy: ForwardProxy) throws(TransportError) {
    guard let server = HTTPClientTransport.server(of: request.url),
      let parts = URLComponents(url: request.url, resolvingAgainstBaseURL: true)
    else { throw .unreachable("not a URL with http or https and a host") }
    // Some servers know their name only without the default port (RFC 9110 section 4.2.3).
    let hasStandardPort = server.port == (server.scheme == .https ? 443 : 80)
    if server.scheme == .https, HTTPClientTransport.isAddress(server.host) {
      throw HTTPClientTransport.unverifiable(server.host, through: proxy)
    }
    self.request = request
    name = server.host
    let host = server.host.contains(":") ? "[\(server.host)]" : server.host
    let authority = hasStandardPort ? host : "\(host):\(server.port)"
    let path = parts.percentEncodedPath.isEmpty ? "/" : parts.percentEncodedPath
    let origin = path + (parts.percentEncodedQuery.map { "?" + $0 } ?? "")
    var fields = HTTPHeaders([("Host", authority), ("Connection", "close")])
    for field in request.headers { fields.add(name: field.name, value: field.value) }
    if request.method == .post { fields.add(name: "Content-Length", value: "\(request.body.count)") }
    if server.scheme == .http, let authorization = proxy.authorization {
      fields.add(name: "Proxy-Authorization", value: authorization)
    }
    head = HTTPRequestHead(
      version: .http1_1, method: HTTPMethod(rawValue: request.method.rawValue),
      uri: server.scheme == .https ? origin : "http://\(authority)\(origin)", headers: fields)
    do throws(ProxyTunnelError) {
      // Also for `http`, whose host stands in the target, so that it has no byte of another part.
      let tunnel = try ProxyTunnel(to: server.host, port: server.port, through: proxy)
      self.tunnel = server.scheme == .https ? tunnel : nil
    } catch {
      throw .unreachable(error.description)
    }
  }
}

/// How far an exchange is, and its answer. The handlers of its connection and the caller's task share it.
private final class ExchangeState: Sendable {
  enum Step: Sendable {
    /// Up to the open tunnel; for `http` up to the connection.
    case connection
    /// TLS with the server.
    case handshake
    /// The request is being sent or was sent.
    case request
  }

  private let answer: EventLoopPromise<HTTPResponse>
  private let current = LockedValue(Step.connection)

  init(answer: EventLoopPromise<HTTPResponse>) { self.answer = answer }

  var step: Step { current.withLock(\.self) }
  func reached(_ step: Step) { current.withLock { $0 = step } }

  // Only the first result of a promise counts.
  func succeed(_ response: HTTPResponse) { answer.succeed(response) }
  func fail(_ error: any Error) { answer.fail(error) }
}

/// Asks for the tunnel, and leaves the connection to the next stage when it is open.
private final class TunnelStage: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  private var tunnel: ProxyTunnel
  private let next: ServerStage
  private let state: ExchangeState
  private var isDone = false

  init(_ tunnel: ProxyTunnel, then next: ServerStage, state: ExchangeState) {
    self.tunnel = tunnel
    self.next = next
    self.state = state
  }

  func channelActive(context: ChannelHandlerContext) {
    context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: tunnel.request)), promise: nil)
    context.fireChannelActive()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard !isDone else { return context.fireChannelRead(data) }
    do {
      guard try tunnel.receive(unwrapInboundIn(data).readableBytesView) else { return }
      isDone = true
      state.reached(.handshake)
      try next.add(to: context.pipeline.syncOperations)
      context.pipeline.syncOperations.removeHandler(context: context, promise: nil)
    } catch {
      errorCaught(context: context, error: error)
    }
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    guard !isDone else { return context.fireErrorCaught(error) }
    state.fail(error)
    context.close(promise: nil)
  }

  func channelInactive(context: ChannelHandlerContext) {
    if !isDone { state.fail(ConnectionEnded()) }
    context.fireChannelInactive()
  }
}

/// Speaks TLS with the server, checks its name and pins, sends the request and collects the answer.
private final class ServerStage: ChannelInboundHandler {
  typealias InboundIn = HTTPClientResponsePart
  typealias OutboundOut = HTTPClientRequestPart

  private let target: ProxiedTarget
  private let options: HTTPClientTransport.Options
  private let context: NIOSSLContext
  private let state: ExchangeState
  private var tls: NIOSSLClientHandler?
  private var hasSent = false
  private var head: HTTPResponseHead?
  private var body: [UInt8] = []

  init(
    _ target: ProxiedTarget, options: HTTPClientTransport.Options, context: NIOSSLContext, state: ExchangeState
  ) {
    self.target = target
    self.options = options
    self.context = context
    self.state = state
  }

  /// Adds this stage to a connection: on its event loop.
  func add(to handlers: ChannelPipeline.SynchronousOperations) throws {
    var stages: [any ChannelHandler] = []
    if target.tunnel != nil {
      let tls = try NIOSSLClientHandler(context: context, serverHostname: target.name)
      self.tls = tls
      stages.append(tls)
    }
    stages += [HTTPRequestEncoder(), ByteToMessageHandler(HTTPResponseDecoder()), self]
    try handlers.addHandlers(stages)
  }

  func channelActive(context: ChannelHandlerContext) {
    if tls == nil { send(context) }
    context.fireChannelActive()
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if let tls, case TLSUserEvent.handshakeCompleted = event {
      do {
        try tls.requireName(target.name)
        if !options.pins.isEmpty { try tls.requirePin(among: options.pins) }
        send(context)
      } catch {
        errorCaught(context: context, error: error)
      }
    }
    context.fireUserInboundEventTriggered(event)
  }

  private func send(_ context: ChannelHandlerContext) {
    guard !hasSent else { return }
    hasSent = true
    state.reached(.request)
    context.write(wrapOutboundOut(.head(target.head)), promise: nil)
    if !target.request.body.isEmpty {
      context.write(wrapOutboundOut(.body(.byteBuffer(ByteBuffer(bytes: target.request.body)))), promise: nil)
    }
    context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .head(let head): self.head = head
    case .body(let bytes):
      guard body.count + bytes.readableBytes <= options.largestAnswer else {
        return errorCaught(context: context, error: TransportError.tooLarge(options.largestAnswer))
      }
      body += bytes.readableBytesView
    case .end:
      guard let head else { return }
      state.succeed(
        HTTPResponse(
          status: Int(head.status.code), headers: head.headers.map { HTTPField($0.name, $0.value) }, body: body))
      context.close(promise: nil)
    }
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    state.fail(error)
    context.close(promise: nil)
  }

  func channelInactive(context: ChannelHandlerContext) {
    state.fail(ConnectionEnded())
    context.fireChannelInactive()
  }
}
