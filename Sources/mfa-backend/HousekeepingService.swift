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
        do {
          try await housekeeping.clean()
          try await housekeeping.remind()
        } catch {
          logger.error("housekeeping failed", metadata: ["reason": "\(error)"])
        }
        try? await Task.sleep(for: .seconds(60))
      }
    }
  }
}
