internal import Logging
internal import MFADomain
internal import ServiceLifecycle

/// Forgets once a minute what is of no use any more.
struct HousekeepingService: Service {
  let housekeeping: Housekeeping
  let logger: Logger

  func run() async throws {
    await cancelWhenGracefulShutdown {
      while !Task.isCancelled {
        do {
          try await housekeeping.clean()
        } catch {
          logger.error("nothing forgotten", metadata: ["reason": "\(error)"])
        }
        try? await Task.sleep(for: .seconds(60))
      }
    }
  }
}
