internal import Glibc
internal import Hummingbird
internal import HummingbirdCore
internal import Logging
internal import NIOCore
internal import NIOExtras
internal import NIOPosix
internal import ServiceLifecycle

/// Serves on a listening socket that another process opened (sd_listen_fds(3)).
///
/// Hummingbird's own server can only open a socket. This one does the same as that one for every connection. At the end
/// it closes its descriptor, and the process that opened the socket keeps it: connections wait there for the next
/// server.
struct PassedSocketServer<Connection: ServerChildChannel>: Service {
  let descriptor: Int32
  let responder: RESTResponder
  let build: @Sendable (@escaping HTTPChannelHandler.Responder) -> Connection
  let logger: Logger
  let didBind: @Sendable (_ port: Int?) async -> Void

  /// Serves until the graceful shutdown of its service group.
  func run() async throws {
    let connection = build { [responder, logger] request, writer, channel in
      try await Self.answer(request, writer, channel, responder, logger)
    }
    let group = MultiThreadedEventLoopGroup.singleton
    let quiescing = ServerQuiescingHelper(group: group)
    let (accepted, accept) = AsyncStream.makeStream(of: Connection.Value.self)
    let listener = try await ServerBootstrap(group: group)
      .serverChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandler(quiescing.makeServerChannelHandler(channel: channel))
        }
      }
      .childChannelOption(.allowRemoteHalfClosure, value: true)
      .childChannelInitializer { [logger] channel in
        connection.setup(channel: channel, logger: logger).map { value in
          // Accepted while the server was closing: no task would serve it.
          if case .terminated = accept.yield(value) { channel.close(promise: nil) }
        }
      }
      .withBoundSocket(descriptor).get()
    listener.closeFuture.whenComplete { _ in accept.finish() }
    await withGracefulShutdownHandler {
      await didBind(listener.localAddress?.port)
      await withDiscardingTaskGroup { [logger] tasks in
        for await value in accepted {
          tasks.addTask { await connection.handle(value: value, logger: logger) }
        }
      }
    } onGracefulShutdown: {
      quiescing.initiateShutdown(promise: nil)
    }
  }

  /// Answers one request as Hummingbird's application does. A response has a date (RFC 9110, section 6.6.1).
  private static func answer(
    _ request: Request, _ writer: consuming ResponseWriter, _ channel: any Channel, _ responder: RESTResponder,
    _ logger: Logger
  ) async throws {
    let context = BasicRequestContext(source: ApplicationRequestContextSource(channel: channel, logger: logger))
    var response = try await responder.respond(to: request, context: context)
    response.headers[.date] = date()
    try await writer.write(response: response.head, body: response.body)
  }

  /// The present time, such as `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110, section 5.6.7).
  private static func date() -> String {
    var now = time(nil)
    var parts = tm()
    gmtime_r(&now, &parts)
    return withUnsafeTemporaryAllocation(of: CChar.self, capacity: 40) { text in
      guard let start = text.baseAddress else { return "" }
      // The program never calls setlocale(3), so names are English.
      let length = strftime(start, text.count, "%a, %d %b %Y %H:%M:%S GMT", &parts)
      return String(decoding: text.prefix(length).map(UInt8.init(bitPattern:)), as: UTF8.self)
    }
  }
}
