public import MFAWire

/// Performs the operations of the MFA backend: `NetworkService`, or a stand-in in tests of an app.
public protocol MFABackend: Sendable {
  /// Performs `operation` and returns its response.
  ///
  /// - Parameter token: The access token of a session, for operations that need one.
  func call<Request, Response>(
    _ operation: WireOperation<Request, Response>, _ request: Request, token: String?
  ) async throws(NetworkError) -> Response
}

extension MFABackend {
  /// Performs an operation that needs no session.
  public func call<Request, Response>(
    _ operation: WireOperation<Request, Response>, _ request: Request
  ) async throws(NetworkError) -> Response {
    try await call(operation, request, token: nil)
  }
}
