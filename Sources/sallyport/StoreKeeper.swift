internal import AttestGate
internal import Logging

/// What a gate does for its store beside serving: it cleans up, and says that it lives. Off the loops.
struct StoreKeeper: Sendable {
  let store: any GateStore
  let housekeeping: Housekeeping
  let identityKeys: IdentityKeyHousekeeping
  /// Told how many gates share the store.
  let gates: LiveGateCount
  let logger: Logger
  private let number = GateNumber.random()

  init(
    store: any GateStore, housekeeping: Housekeeping, identityKeys: IdentityKeyHousekeeping,
    gates: LiveGateCount, logger: Logger
  ) {
    self.store = store
    self.housekeeping = housekeeping
    self.identityKeys = identityKeys
    self.gates = gates
    self.logger = logger
  }

  /// Works until the task is cancelled.
  func run() async {
    await withTaskGroup(of: Void.self) { group in
      group.addTask { await cleanUp() }
      group.addTask { await sayAlive() }
    }
    try? await store.leave(number)
  }

  // MARK: Cleaning up

  private func cleanUp() async {
    while !Task.isCancelled {
      do throws(StoreError) {
        if let report = try await housekeeping.run() { log(report) }
      } catch {
        logger.error("housekeeping of the store failed: it is tried again", metadata: ["step": "\(error.step)"])
      }
      await tendIdentityKeys()
      await Self.rest(for: .seconds(30))
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

  private func log(_ report: Housekeeping.Report) {
    switch report.ring {
    case .rotated: logger.notice("a new key makes nonces; those of the old one are good until they expire")
    case .pruned(let count): logger.info("old keys of nonces were dropped", metadata: ["keys": "\(count)"])
    case nil: break
    }
    if report.removedKeys > 0 {
      logger.notice("keys were removed that nobody used", metadata: ["keys": "\(report.removedKeys)"])
    }
  }

  // MARK: Other gates

  /// How long a gate counts that says nothing.
  private static let life = Duration.seconds(20)

  private func sayAlive() async {
    var live = LiveGates()
    while !Task.isCancelled {
      // A store that cannot be had says so elsewhere; the last count stays.
      if let count = try? await store.report(number, life: Self.life) {
        let before = live.count
        live.see(count, at: .now)
        gates.set(live.count)
        if live.count != before {
          logger.info("gates that share the store", metadata: ["gates": "\(live.count)", "before": "\(before)"])
        }
      }
      await Self.rest(for: .seconds(5))
    }
  }

  /// Up to a quarter shorter or longer, so that gates that were started together do not come together.
  private static func rest(for duration: Duration) async {
    try? await Task.sleep(for: duration * Double.random(in: 0.75...1.25))
  }
}
