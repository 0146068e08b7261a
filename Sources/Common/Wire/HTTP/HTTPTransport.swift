/// Sends one HTTP request and returns the answer.
///
/// An implementation verifies the server's certificate and name, and follows no redirects: what a request carries, such
/// as a nonce or a token, is for the server that it names.
public protocol HTTPTransport: Sendable {
  /// Returns the answer with any status. A refusal is an answer, not an error.
  func send(_ request: HTTPRequest) async throws(TransportError) -> HTTPResponse
}
