internal import Commands
internal import ConfigurationEngine
internal import ProcessFrame

extension FileReads {
  /// Runs `work`, which reads files of the configuration, on another thread.
  ///
  /// - Throws: The error of `work`, or `.unavailable` if it takes longer than `limit`.
  func run<Value: Sendable>(
    within limit: Duration = limit, _ work: @escaping @Sendable () throws(Failure) -> Value
  ) async throws(Failure) -> Value {
    try await run(within: limit, late: .lateFiles(within: limit), work)
  }
}
