internal import ByteCoding
internal import HTTPTypes
internal import HummingbirdCore
internal import Locking
internal import Logging
internal import MFADomain
internal import NIOCore
internal import NIOHTTP1
internal import NIOHTTPTypes
internal import NIOHTTPTypesHTTP1
internal import NIOWebSocket
internal import ServiceLifecycle

/// The dependencies of sockets.
struct SocketService: Sendable {
  let live: LiveService
  let limits: SocketLimits
  let logger: Logger
}

/// A connection that speaks HTTP, or becomes a WebSocket with its first request.
///
/// Only the first request can upgrade: the gate opens a connection for each socket, and NIO checks no later request.
struct UpgradableChannel: ServerChildChannel, HTTPChannelHandler {
  static let subprotocol = "mfa.v1"
  /// The time limit for the first request.
  static let longestSilence = TimeAmount.seconds(30)
  /// The paths that accept an upgrade.
  static let paths: Set<String> = ["/", "/api/v1/socket", "/socket"]

  let responder: HTTPChannelHandler.Responder
  let service: SocketService
  /// The time limit for receiving a request body.
  let bodyTime: Duration

  struct Value: ServerChildChannelValue {
    let channel: any Channel
    let upgrade: EventLoopFuture<Outcome>
  }

  enum Outcome: Sendable {
    case http(NIOAsyncChannel<HTTPRequestPart, HTTPResponsePart>)
    case socket(NIOAsyncChannel<WebSocketFrame, WebSocketFrame>, Caller)
  }

  func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
    channel.eventLoop.makeCompletedFuture {
      let configuration = NIOUpgradableHTTPServerPipelineConfiguration(
        upgradeConfiguration: NIOTypedHTTPServerUpgradeConfiguration(
          upgraders: [upgrader()], notUpgradingCompletionHandler: { [bodyTime] in Self.serveHTTP($0, bodyTime, logger) }
        ))
      let upgrade = try channel.pipeline.syncOperations.configureUpgradableHTTPServerPipeline(
        configuration: configuration)
      let upgradeHandler = try channel.pipeline.syncOperations.handler(
        type: NIOTypedHTTPServerUpgradeHandler<Outcome>.self)
      try channel.pipeline.syncOperations.addHandler(
        OpeningHandshake { [service, channel] head, fault in Self.refuse(head, fault, on: channel, service) },
        position: .before(upgradeHandler))
      // NIO's own handler has written the refusal at this point.
      try channel.pipeline.syncOperations.addHandler(MalformedHeadHandler(isAnswered: true))
      return Value(channel: channel, upgrade: upgrade)
    }
  }

  func handle(value: Value, logger: Logger) async {
    await withTaskExecutorPreference(EventLoopExecutor(value.channel.eventLoop)) {
      await serve(value, logger)
    }
  }

  private func serve(_ value: Value, _ logger: Logger) async {
    do {
      switch try await Self.outcome(of: value) {
      case .http(let channel): await handleHTTP(asyncChannel: channel, logger: logger)
      case .socket(let channel, let caller):
        await service.live.countingSocket {
          await SocketSession(channel: channel, caller: caller, service: service).run()
        }
      }
    } catch {
      logger.debug("connection closed before its first request", metadata: ["reason": "\(error)"])
    }
  }

  /// Waits for the first request. Closes a connection without one after `longestSilence` or at shutdown.
  private static func outcome(of value: Value) async throws -> Outcome {
    let channel = value.channel
    let deadline = channel.eventLoop.scheduleTask(in: longestSilence) { channel.close(promise: nil) }
    defer { deadline.cancel() }
    return try await withTaskCancellationOrGracefulShutdownHandler {
      try await value.upgrade.get()
    } onCancelOrGracefulShutdown: {
      channel.close(promise: nil)
    }
  }

  private func upgrader() -> NIOTypedWebSocketServerUpgrader<Outcome> {
    let admitted = LockedValue<Caller?>(nil)
    return NIOTypedWebSocketServerUpgrader(
      // The server answers faults in frames with its own close codes.
      maxFrameSize: service.limits.largestMessage, enableAutomaticErrorHandling: false,
      shouldUpgrade: { channel, head in
        // Like every request: on the connection's own thread, and not on the threads that operators need.
        Self.future(on: channel.eventLoop) {
          do throws(UpgradeRefusal) {
            let caller = try await caller(opening: head)
            admitted.withLock { $0 = caller }
            return Self.headers(answering: head)
          } catch {
            // NIO does not pass on a request whose upgrade was refused after its bytes were read.
            try? await error.answer(on: channel)
            return nil
          }
        }
      },
      upgradePipelineHandler: { channel, _ in
        channel.eventLoop.makeCompletedFuture {
          guard let caller = admitted.withLock({ $0 }) else { throw ChannelError.operationUnsupported }
          return .socket(try openSocket(on: channel), caller)
        }
      })
  }

  /// Runs `body` on the thread of `loop`.
  private static func future<Value: Sendable>(
    on loop: any EventLoop, _ body: @escaping @Sendable () async throws -> Value
  ) -> EventLoopFuture<Value> {
    let promise = loop.makePromise(of: Value.self)
    Task(executorPreference: EventLoopExecutor(loop)) {
      do { promise.succeed(try await body()) } catch { promise.fail(error) }
    }
    return promise.futureResult
  }

  private func openSocket(on channel: any Channel) throws -> NIOAsyncChannel<WebSocketFrame, WebSocketFrame> {
    let largest = service.limits.largestMessage
    try channel.pipeline.syncOperations.addHandler(FrameRules())
    try channel.pipeline.syncOperations.addHandler(
      NIOWebSocketFrameAggregator(
        minNonFinalFragmentSize: 0, maxAccumulatedFrameCount: 64, maxAccumulatedFrameSize: largest))
    return try NIOAsyncChannel(wrappingChannelSynchronously: channel)
  }

  private static func refuse(
    _ head: HTTPRequestHead, _ fault: OperationInputError, on channel: any Channel, _ service: SocketService
  ) {
    let current = service.live.current
    let requestID = current.callers.requestID(of: fields(of: head))
    current.registry.logUnserved(fault, requestID: requestID)
    let refusal = UpgradeRefusal(
      refusal: PublicRefusal(fault), requestID: requestID, isHead: head.method == .HEAD,
      namesVersion: fault == .socketVersion)
    Task(executorPreference: EventLoopExecutor(channel.eventLoop)) { try? await refusal.answer(on: channel) }
  }

  private static func fields(of head: HTTPRequestHead) -> HTTPFields {
    var fields = HTTPFields()
    for header in head.headers {
      if let name = HTTPField.Name(header.name) { fields.append(HTTPField(name: name, value: header.value)) }
    }
    return fields
  }

  /// Verifies the caller who opens a socket. A session in the request is checked as in `session.attach`.
  private func caller(opening head: HTTPRequestHead) async throws(UpgradeRefusal) -> Caller {
    let fields = Self.fields(of: head)
    let current = service.live.current
    let requestID = current.callers.requestID(of: fields)
    let path = head.uri.split(atBytes: UInt8(ascii: "?"), maxSplits: 1).first ?? ""
    do {
      // An upgrade must be a GET request (RFC 6455, section 4.1), but NIO upgrades any method.
      guard head.method == .GET else { throw OperationInputError.methodNotAllowed(["GET"]) }
      let (caller, _) = try await current.callers.caller(
        of: fields, requestID: requestID, opening: RequestLine(method: head.method.rawValue, target: head.uri),
        effect: .access)
      guard Self.paths.contains(where: { $0.hasSameBytes(as: path) }) else {
        throw OperationInputError.unknownOperation
      }
      if caller.session != nil { try await Self.admit(caller, current) }
      return caller
    } catch {
      current.registry.logUnserved(error, requestID: requestID)
      throw UpgradeRefusal(refusal: PublicRefusal(error), requestID: requestID, isHead: head.method == .HEAD)
    }
  }

  private static func admit(_ caller: Caller, _ service: ServiceGeneration) async throws {
    do {
      try await Notices(service.context).admit(caller)
    } catch {
      throw await service.registry.kept(error, of: AttachRequest.method, by: caller)
    }
  }

  /// Selects the subprotocol if the client offers it. A client that offers none uses the same protocol.
  private static func headers(answering head: HTTPRequestHead) -> HTTPHeaders {
    head.headers[canonicalForm: "Sec-WebSocket-Protocol"].contains(Substring(subprotocol))
      ? ["Sec-WebSocket-Protocol": subprotocol] : [:]
  }

  private static func serveHTTP(
    _ channel: any Channel, _ bodyTime: Duration, _ logger: Logger
  ) -> EventLoopFuture<Outcome> {
    channel.eventLoop.makeCompletedFuture {
      try channel.pipeline.syncOperations.addHandler(HTTP1ToHTTPServerCodec(secure: false))
      try channel.pipeline.syncOperations.addHandler(
        HTTPConnectionStateHandler(idleTimeout: .seconds(90), logger: logger))
      try channel.pipeline.syncOperations.addHandler(RequestBodyDeadline(bodyTime))
      return .http(
        try NIOAsyncChannel(
          wrappingChannelSynchronously: channel, configuration: .init(isOutboundHalfClosureEnabled: true)))
    }
  }
}
