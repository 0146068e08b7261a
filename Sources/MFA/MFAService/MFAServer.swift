internal import Hummingbird
internal import HummingbirdCore
public import Logging
public import MFADomain
public import MFATokens
internal import NIOCore
public import ServiceLifecycle

/// The backend's server: REST and sockets on one address.
public struct MFAServer: Service {
  public enum Address: Sendable, Hashable {
    /// Port 0 takes a free one.
    case tcp(host: String, port: Int)
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

  /// - Parameters:
  ///   - bodyTime: how long the body of a request may take to arrive.
  ///   - didBind: called once the server listens, with its port if it has one.
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
