internal import Hummingbird
public import Logging
internal import MFADomain
internal import MFATokens
internal import NIOCore
public import ServiceLifecycle

/// The backend's server: REST and sockets on one address.
public struct MFAServer: Service {
  public enum Address: Sendable, Hashable {
    /// Port 0 takes a free one.
    case tcp(host: String, port: Int)
    case unix(path: String)
  }

  private let registry: OperationRegistry
  private let callers: CallerReader
  private let documents: PublicDocuments
  private let address: Address
  private let logger: Logger
  private let didBind: @Sendable (_ port: Int?) async -> Void

  /// - Parameter didBind: called once the server listens, with its port if it has one.
  public init(
    registry: OperationRegistry, callers: CallerReader, documents: PublicDocuments, address: Address, logger: Logger,
    didBind: @escaping @Sendable (_ port: Int?) async -> Void = { _ in }
  ) {
    self.registry = registry
    self.callers = callers
    self.documents = documents
    self.address = address
    self.logger = logger
    self.didBind = didBind
  }

  public func run() async throws {
    let responder = RESTResponder(
      registry: registry, routes: RouteTable(registry.operations), callers: callers, documents: documents)
    let bind: BindAddress =
      switch address {
      case .tcp(let host, let port): .hostname(host, port: port)
      case .unix(let path): .unixDomainSocket(path: path)
      }
    let application = Application(
      responder: responder,
      server: .http1(configuration: .init(idleTimeout: .seconds(90))),
      configuration: ApplicationConfiguration(address: bind),
      onServerRunning: { [didBind] channel in await didBind(channel.localAddress?.port) },
      logger: logger)
    try await application.run()
  }
}
