internal import Hummingbird
internal import HummingbirdCore
public import Logging
internal import NIOCore
public import ServiceLifecycle

/// The server of the backend: REST and WebSocket on one address.
public struct MFAServer: Service {
  /// The address of a listener.
  public enum Address: Sendable, Hashable {
    /// An address of the network. Port 0 selects a free port.
    case tcp(host: String, port: Int)
    /// The path of a Unix socket.
    case unix(path: String)

    var bind: BindAddress {
      switch self {
      case .tcp(let host, let port): .hostname(host, port: port)
      case .unix(let path): .unixDomainSocket(path: path)
      }
    }
  }

  private let live: LiveService
  private let limits: SocketLimits
  private let bodyTime: Duration
  private let address: Address
  private let passed: Int32?
  private let logger: Logger
  private let didBind: @Sendable (_ port: Int?) async -> Void

  /// Creates the server.
  ///
  /// - Parameters:
  ///   - passed: a socket that another process opened at `address` and that listens already; the server owns it. `nil`
  ///     to open one.
  ///   - limits: the limits of one socket.
  ///   - bodyTime: the time limit for receiving a request body.
  ///   - didBind: called once the server listens, with its port; `nil` for a Unix socket.
  public init(
    _ live: LiveService, address: Address, passed: Int32? = nil, limits: SocketLimits = SocketLimits(),
    bodyTime: Duration = .seconds(10), logger: Logger,
    didBind: @escaping @Sendable (_ port: Int?) async -> Void = { _ in }
  ) {
    self.live = live
    self.limits = limits
    self.bodyTime = bodyTime
    self.address = address
    self.passed = passed
    self.logger = logger
    self.didBind = didBind
  }

  /// Serves until the graceful shutdown of its service group.
  public func run() async throws {
    // A reload changes neither the keys of the tokens nor the operations.
    let first = live.current
    let documents = PublicDocuments(jwks: first.tokens.jwks, operations: first.registry.operations)
    let responder = RESTResponder(live: live, documents: documents)
    let service = SocketService(live: live, limits: limits, logger: logger)
    let build: @Sendable (@escaping HTTPChannelHandler.Responder) -> UpgradableChannel = { [bodyTime] in
      UpgradableChannel(responder: $0, service: service, bodyTime: bodyTime)
    }
    if let passed {
      return try await PassedSocketServer(
        descriptor: passed, responder: responder, build: build, logger: logger, didBind: didBind
      ).run()
    }
    let application = Application(
      responder: responder, server: HTTPServerBuilder(build),
      configuration: ApplicationConfiguration(address: address.bind),
      onServerRunning: { [didBind] channel in await didBind(channel.localAddress?.port) },
      logger: logger)
    try await application.run()
  }
}
