public import Transport

/// Routes each request of the admin server to its operation.
///
/// Every failure becomes an `AdminError` with the same form of answer.
public struct AdminRouter: RequestResponder {
  /// All operations, in the order of the resources.
  public let operations: [AdminOperation]
  private let access: AdminAccess
  private let hosts: AdminHosts

  public init(_ resources: [any AdminResource], access: AdminAccess, hosts: AdminHosts = .any) {
    operations = resources.flatMap(\.operations)
    self.access = access
    self.hosts = hosts
  }

  /// Leaves the admin server's event loop at once, so that no operation can delay another connection.
  public func respond(to request: Request, from peer: Peer) async -> Disposition {
    .respond(
      await withTaskExecutorPreference(globalConcurrentExecutor) { await response(to: request, from: peer.process) })
  }

  public func response(to fault: RequestError, of headers: HeaderFields?, id: String, from peer: Peer) -> Response {
    AdminRefusal(.malformedRequest(fault)).response(id: id)
  }

  /// Returns the answer to `request`, which may come without a socket.
  public func response(to request: Request, from process: PeerProcess? = nil) async -> Response {
    do throws(AdminError) {
      try hosts.check(request.headers)
      try access.check(request.headers)
      // A browser sends `Origin` with requests that a foreign page makes.
      guard request.method == "GET" || request.headers.first("Origin") == nil else { throw .foreignOrigin }
      let (operation, values) = try operation(for: request)
      guard request.body.isEmpty || ["POST", "PUT"].contains(request.method) else { throw .bodyNotExpected }
      let asked = try AdminRequest(request, from: process, values: values, to: operation)
      return try await operation.answer(asked).adding("X-Request-Id", request.id)
    } catch {
      return AdminRefusal(error).response(id: request.id)
    }
  }

  private func operation(
    for request: Request
  ) throws(AdminError) -> (operation: AdminOperation, values: [String: String]) {
    var allowed: [String] = []
    for operation in operations {
      guard let values = operation.values(in: request.path) else { continue }
      if operation.method == request.method { return (operation, values) }
      if !allowed.contains(operation.method) { allowed.append(operation.method) }
    }
    throw allowed.isEmpty ? .notFound : .methodNotAllowed(allowed: allowed)
  }
}
