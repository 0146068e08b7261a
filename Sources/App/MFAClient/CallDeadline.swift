internal import AttestClient

/// The end of the time that a call may take.
enum CallDeadline {
  /// Returns the result of `body`, or throws when `limit` is over: `body` is then cancelled, and its result ignored.
  ///
  /// A cancelled caller cancels `body` and waits for it no longer.
  static func within<Value: Sendable>(
    _ limit: Duration, _ body: @escaping @Sendable () async throws(NetworkError) -> Value
  ) async throws(NetworkError) -> Value {
    try await ExchangeDeadline.within(
      limit, expired: NetworkError.gate(.transport(.lost("no answer within \(limit)"))), cancelled: .gate(.cancelled),
      body)
  }
}
