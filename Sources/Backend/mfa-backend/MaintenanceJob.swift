internal import Logging
internal import MFADomain
internal import MFAService
internal import ServiceLifecycle

/// Removes expired records and sends recovery reminders, once a minute.
struct MaintenanceJob: Service {
  let live: LiveService
  let logger: Logger

  func run() async throws {
    await cancelWhenGracefulShutdown {
      while !Task.isCancelled {
        // A reload replaces the policy and the delivery.
        let maintenance = RecordMaintenance(live.context)
        // A failure of one does not prevent the other.
        await report { try await maintenance.clean() }
        // A clock that is behind would remove the codes of all other backends.
        if live.agreesWithGate { await report { try await maintenance.removeFuture() } }
        await report {
          try await maintenance.remind { recipient in
            logger.error(
              "recovery reminder not sent: number or address unreadable",
              metadata: ["user_id": "\(recipient.userID)", "reason": "\(recipient.reason)"])
          }
        }
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
      logger.error("maintenance failed", metadata: ["reason": "\(error)"])
    }
  }
}
