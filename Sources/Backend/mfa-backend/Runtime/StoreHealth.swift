internal import ByteCoding
internal import Foundation
internal import Locking
internal import Logging
internal import MFADomain
internal import MFAService
internal import ServiceLifecycle

/// Reads from the store every few seconds, and remembers whether it answered. After a write that failed, it writes too,
/// until a write succeeds: a full disk still answers reads.
final class StoreHealth: Service {
  private enum State: Sendable {
    case untried
    case healthy
    case failing(since: Timestamp, reason: String)
  }

  static let interval = Duration.seconds(5)
  private static let patience = Duration.seconds(2)

  private let store: MeasuredStore
  private let logger: Logger
  private let state = LockedValue(State.untried)

  init(_ store: MeasuredStore, logger: Logger) {
    self.store = store
    self.logger = logger
  }

  /// The last known state.
  var check: ReadinessCheck {
    switch state.withLock({ $0 }) {
    case .untried: ReadinessCheck("store", ready: false, "not tried yet")
    case .healthy: ReadinessCheck("store", ready: true, "ok")
    case .failing(let since, let reason): ReadinessCheck("store", ready: false, "failing since \(since): \(reason)")
    }
  }

  func run() async throws {
    await cancelWhenGracefulShutdown {
      while !Task.isCancelled {
        await self.probe()
        try? await Task.sleep(for: Self.interval)
      }
    }
  }

  private func probe() async {
    do {
      try await StoreDeadline.within(Self.patience) { [store] in
        _ = try await store.read { try $0.dataKeys().count }
        guard store.lastWriteFailed else { return }
        // The record has expired, so that the next clean-up removes it.
        let id = "store check \(UUID().uuidString)"
        _ = try await store.write(excluding: .rows) { try $0.spend(identity: id, until: .now()) }
      }
      note(nil)
    } catch {
      note((error as? MFAStoreError)?.reason ?? "\(error)")
    }
  }

  /// Records an attempt. Logs only a change.
  private func note(_ fault: String?) {
    let change = state.withLock { state -> (isHealthy: Bool, changed: Bool) in
      switch (state, fault) {
      case (.healthy, nil): return (true, false)
      case (.untried, nil):
        state = .healthy
        return (true, false)
      case (.failing, nil):
        state = .healthy
        return (true, true)
      case (.failing(let since, _), let fault?):
        state = .failing(since: since, reason: fault)
        return (false, false)
      case (_, let fault?):
        state = .failing(since: .now(), reason: fault)
        return (false, true)
      }
    }
    guard change.changed else { return }
    if change.isHealthy {
      logger.notice("store available")
    } else {
      logger.error("store unavailable", metadata: ["reason": "\(fault ?? "")"])
    }
  }
}
