internal import Hummingbird
internal import HummingbirdCore
public import Logging
public import MFADomain
public import MFATokens
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
  }

  private let context: DomainContext
  private let registry: OperationRegistry
  private let callers: CallerReader
  private let tokens: AccessTokens
  private let limits: SocketLimits
  private let bodyTime: Duration
  private let address: Address
  private let logger: Logger
  private let didBind: @Sendable (_ port: Int?) async -> Void

  /// Creates the server.
  ///
  /// - Parameters:
  ///   - limits: the limits of one socket.
  ///   - bodyTime: the time limit for receiving a request body.
  ///   - didBind: called once the server listens, with its port; `nil` for a Unix socket.
  public init(
    context: DomainContext, registry: OperationRegistry, callers: CallerReader, tokens: AccessTokens, address: Address,
    limits: SocketLimits = SocketLimits(), bodyTime: Duration = .seconds(10), logger: Logger,
    didBind: @escaping @Sendable (_ port: Int?) async -> Void = { _ in }
  ) {
    self.context = context
    self.registry = registry
    self.callers = callers
    self.tokens = tokens
    self.limits = limits
    self.bodyTime = bodyTime
    self.address = address
    self.logger = logger
    self.didBind = didBind
  }

  /// Serves until the graceful shutdown of its service group.
  public func run() async throws {
    let responder = RESTResponder(
      registry: registry, routes: RESTRouteTable(registry.operations), callers: callers,
      documents: PublicDocuments(jwks: tokens.jwks, operations: registry.operations))
    let service = SocketService(
      context: context, registry: registry, callers: callers, tokens: tokens, limits: limits, logger: logger)
    let application = Application(
      responder: responder,
      server: HTTPServerBuilder { [bodyTime] in UpgradableChannel(responder: $0, service: service, bodyTime: bodyTime)
      },
      configuration: ApplicationConfiguration(address: address.bind),
      onServerRunning: { [didBind] channel in await didBind(channel.localAddress?.port) },
      logger: logger)
    try await application.run()
  }
}
