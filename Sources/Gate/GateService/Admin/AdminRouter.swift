public import Transport

/// The admin server as the engine sees it: finds the operation that a request asks for.
///
/// It knows nothing of what the operations do. Whatever goes wrong is an `AdminFault`, and is told in one form.
public struct AdminRouter: RequestResponder {
  /// Every operation, in the order of the resources.
  public let operations: [AdminOperation]
  private let access: AdminAccess
  private let hosts: AdminHosts

  public init(_ resources: [any AdminResource], access: AdminAccess, hosts: AdminHosts = .any) {
    operations = resources.flatMap(\.operations)
    self.access = access
    self.hosts = hosts
  }

  /// Begins on the admin server's own event loop, and leaves it at once: no operation can hold up another connection.
  public func respond(to request: Request, from peer: Peer) async -> Disposition {
    .respond(await withTaskExecutorPreference(globalConcurrentExecutor) { await response(to: request) })
  }

  public func response(to fault: RequestFault, id: String, from peer: Peer) -> Response {
    AdminRefusal(.malformedRequest(fault)).response(id: id)
  }

  /// The answer to `request`, without a socket.
  public func response(to request: Request) async -> Response {
    do throws(AdminFault) {
      try hosts.check(request.headers)
      try access.check(request.headers)
      // A browser sends this when a page of another site makes the request.
      guard request.method == "GET" || request.headers.first("Origin") == nil else { throw .foreignOrigin }
      let (operation, values) = try operation(for: request)
      guard request.body.isEmpty || ["POST", "PUT"].contains(request.method) else { throw .bodyNotExpected }
      let asked = try AdminRequest(request, values: values, parameters: operation.parameters)
      return try await operation.answer(asked).adding("X-Request-Id", request.id)
    } catch {
      return AdminRefusal(error).response(id: request.id)
    }
  }

  private func operation(
    for request: Request
  ) throws(AdminFault) -> (operation: AdminOperation, values: [String: String]) {
    var allowed: [String] = []
    for operation in operations {
      guard let values = operation.values(in: request.path) else { continue }
      if operation.method == request.method { return (operation, values) }
      if !allowed.contains(operation.method) { allowed.append(operation.method) }
    }
    throw allowed.isEmpty ? .notFound : .methodNotAllowed(allowed: allowed)
  }
}
