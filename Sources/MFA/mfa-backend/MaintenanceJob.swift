internal import Logging
internal import MFADomain
internal import ServiceLifecycle

/// Removes expired records and sends recovery reminders, once a minute.
struct MaintenanceJob: Service {
  let housekeeping: RecordMaintenance
  let logger: Logger

  func run() async throws {
    await cancelWhenGracefulShutdown {
      while !Task.isCancelled {
        // A failure of one does not prevent the other.
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
      // The backend is stopping.
    } catch {
      logger.error("housekeeping failed", metadata: ["reason": "\(error)"])
    }
  }
}
