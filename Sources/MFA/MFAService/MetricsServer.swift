internal import HTTPTypes
internal import Hummingbird
internal import HummingbirdCore
public import Logging
internal import NIOCore
public import ServiceLifecycle

/// Serves `GET /metrics`, and nothing else, on its own address: metrics are for the operator and must not pass
/// through the gate.
public struct MetricsServer: Service {
  private let render: @Sendable () async -> [UInt8]
  private let address: MFAServer.Address
  private let logger: Logger

  /// Creates the server.
  ///
  /// - Parameter render: returns the metrics in the Prometheus text format, version 0.0.4.
  public init(address: MFAServer.Address, logger: Logger, render: @escaping @Sendable () async -> [UInt8]) {
    self.render = render
    self.address = address
    self.logger = logger
  }

  /// Serves until the graceful shutdown of its service group.
  public func run() async throws {
    let responder = CallbackResponder<BasicRequestContext> { [render] request, _ in
      guard request.uri.path == "/metrics" else { return Response(status: .notFound) }
      guard request.method == .get || request.method == .head else {
        return Response(status: .methodNotAllowed, headers: [.allow: "GET, HEAD"])
      }
      let response = Response(
        status: .ok, headers: [.contentType: "text/plain; version=0.0.4; charset=utf-8"],
        body: ResponseBody(byteBuffer: ByteBuffer(bytes: await render())))
      return request.method == .head ? response.createHeadResponse() : response
    }
    let application = Application(
      responder: responder,
      server: .http1(
        configuration: .init(additionalChannelHandlers: [MalformedHeadHandler(isAnswered: false)])),
      configuration: ApplicationConfiguration(address: address.bind),
      onServerRunning: { [logger] channel in
        logger.info("metrics listening", metadata: ["port": "\(channel.localAddress?.port ?? 0)"])
      },
      logger: logger)
    try await application.run()
  }
}

extension MFAServer.Address {
  var bind: BindAddress {
    switch self {
    case .tcp(let host, let port): .hostname(host, port: port)
    case .unix(let path): .unixDomainSocket(path: path)
    }
  }
}
