internal import AttestGate
internal import Logging

/// Keeps the store of a gate clean beside serving. Off the loops.
struct MaintenanceService: Sendable {
  let store: any GateStore
  let housekeeping: StoreMaintenance
  let identityKeys: IdentityKeyRotation
  let logger: Logger

  /// Works until the task is cancelled.
  func run() async {
    while !Task.isCancelled {
      do throws(StoreError) {
        if let report = try await housekeeping.run() { log(report) }
      } catch {
        logger.error("housekeeping of the store failed: it is tried again", metadata: ["step": "\(error.step)"])
      }
      await tendIdentityKeys()
      await Rest.about(.seconds(30))
    }
  }

  /// Every gate by itself: the store lets one of them make the key.
  private func tendIdentityKeys() async {
    do throws(StoreError) {
      if try await identityKeys.run() { logger.notice("a new key for identities is published") }
    } catch {
      logger.error("the keys of identities cannot be had", metadata: ["step": "\(error.step)"])
    }
  }

  private func log(_ report: StoreMaintenance.Report) {
    switch report.ring {
    case .rotated: logger.notice("a new key makes nonces; those of the old one are good until they expire")
    case .pruned(let count): logger.info("old keys of nonces were dropped", metadata: ["keys": "\(count)"])
    case nil: break
    }
    if report.removedKeys > 0 {
      logger.notice("unused keys removed", metadata: ["keys": "\(report.removedKeys)"])
    }
  }
}

enum Rest {
  /// Up to a quarter shorter or longer, so that gates that were started together do not come together.
  static func about(_ duration: Duration) async {
    try? await Task.sleep(for: duration * Double.random(in: 0.75...1.25))
  }
}
