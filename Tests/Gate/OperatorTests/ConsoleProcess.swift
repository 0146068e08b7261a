import TestSupport

extension ConsoleProcess {
  /// Starts a console for the gate of `bench`.
  init(_ bench: AdminBench, _ arguments: [String] = []) async throws {
    try await self.init("sallyport", arguments + bench.config)
  }
}
