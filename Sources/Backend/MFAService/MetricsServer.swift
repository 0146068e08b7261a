internal import HTTPTypes
internal import Hummingbird
internal import HummingbirdCore
public import Logging
internal import NIOCore
internal import NIOPosix
public import ServiceLifecycle

/// Serves `/metrics`, `/livez` and `/readyz`, and nothing else, on its own address and its own thread: they are for the
/// operator, must not pass through the gate, and must answer whatever clients do.
public struct MetricsServer: Service {
  private let router: AdminRouter
  private let address: MFAServer.Address
  private let logger: Logger

  /// Creates the server.
  public init(_ router: AdminRouter, address: MFAServer.Address, logger: Logger) {
    self.router = router
    self.address = address
    self.logger = logger
  }

  /// Serves until the graceful shutdown of its service group.
  public func run() async throws { try await OperatorThreads.with(serve) }

  private func serve(on group: MultiThreadedEventLoopGroup) async throws {
    let responder = CallbackResponder<BasicRequestContext> { [router] request, _ in
      let answer = await router.answer(
        request.method.rawValue, request.uri.string, accept: request.headers[.accept])
      var headers: HTTPFields = [.contentType: answer.type, .cacheControl: "no-store"]
      for (name, value) in answer.fields {
        if let name = HTTPField.Name(name) { headers[name] = value }
      }
      let response = Response(
        status: HTTPResponse.Status(code: answer.status), headers: headers,
        body: ResponseBody(byteBuffer: ByteBuffer(bytes: answer.body)))
      return request.method == .head ? response.createHeadResponse() : response
    }
    let application = Application(
      responder: responder,
      server: .http1(
        configuration: .init(additionalChannelHandlers: [MalformedHeadHandler(isAnswered: false)])),
      configuration: ApplicationConfiguration(address: address.bind),
      onServerRunning: { [logger] channel in
        logger.info("metrics listening", metadata: ["port": .stringConvertible(channel.localAddress?.port ?? 0)])
      },
      eventLoopGroupProvider: .shared(group), logger: logger)
    try await application.run()
  }
}
