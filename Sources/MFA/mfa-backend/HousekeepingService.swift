internal import Logging
internal import MFADomain
internal import ServiceLifecycle

/// Forgets once a minute what is of no use any more, and reminds of what waits.
struct HousekeepingService: Service {
  let housekeeping: Housekeeping
  let logger: Logger

  func run() async throws {
    await cancelWhenGracefulShutdown {
      while !Task.isCancelled {
        // What one fails at does not keep the other.
        await report { try await housekeeping.clean() }
        await report { try await housekeeping.remind() }
        try? await Task.sleep(for: .seconds(60))
      }
    }
  }

  private func report(_ body: () async throws -> Void) async {
    guard !Task.isCancelled else { return }
    do {
      try await body()
    } catch is CancellationError {
      // The backend ends.
    } catch {
      logger.error("housekeeping failed", metadata: ["reason": "\(error)"])
    }
  }
}
