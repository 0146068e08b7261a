internal import Locking
public import MFADomain

/// The part of the service that follows from the settings and that a reload replaces as a whole.
public struct ServiceGeneration: Sendable {
  let context: DomainContext
  let registry: OperationRegistry
  let callers: CallerReader
  let tokens: AccessTokens
  let routes: RESTRouteTable

  /// Creates a generation. All generations of one service must have the same store, vault and hub.
  public init(context: DomainContext, registry: OperationRegistry, callers: CallerReader, tokens: AccessTokens) {
    self.context = context
    self.registry = registry
    self.callers = callers
    self.tokens = tokens
    routes = RESTRouteTable(registry.operations)
  }
}

/// The current generation of a running service, and the number of its sockets.
///
/// Each request uses one generation from its beginning to its end. A socket stays open across a reload, and its next
/// request uses the new generation.
public final class LiveService: Sendable {
  private let generation: LockedValue<ServiceGeneration>
  private let sockets = LockedValue(0)

  /// Creates a service.
  public init(_ generation: ServiceGeneration) { self.generation = LockedValue(generation) }

  /// The generation that new requests use.
  var current: ServiceGeneration { generation.withLock { $0 } }

  /// The domain of the current generation.
  public var context: DomainContext { current.context }

  /// Whether this machine's clock agreed with the gate's within the last minutes, since the last reload.
  public var agreesWithGate: Bool { current.callers.agreesWithGate }

  /// Uses `next` for all requests that begin from now on.
  public func replace(with next: ServiceGeneration) { generation.withLock { $0 = next } }

  /// The number of open sockets.
  public var openSockets: Int { sockets.withLock { $0 } }

  /// Counts a socket while `body` runs.
  func countingSocket(_ body: () async -> Void) async {
    sockets.withLock { $0 += 1 }
    await body()
    sockets.withLock { $0 -= 1 }
  }
}
