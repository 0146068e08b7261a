internal import ByteCoding
internal import Logging
internal import MFAService
internal import Observability
internal import ServiceLifecycle

/// Fetches the gate's keys, again and again until it has them. Until then every request gets 503.
struct GateKeyWait: Service {
  let runtime: BackendRuntime
  let logger: Logger

  private static let shortest = Duration.seconds(1)
  private static let longest = Duration.seconds(30)

  func run() async throws {
    let attempts = Task { await fetchUntilPresent() }
    // A shutdown does not wait for an attempt, which may take ten seconds. The end of a service stops the others.
    try? await gracefulShutdown()
    attempts.cancel()
  }

  private func fetchUntilPresent() async {
    var pause = Self.shortest
    while !Task.isCancelled, case .missing = await runtime.keyState {
      await fetch(nextTry: pause)
      try? await Task.sleep(for: pause)
      pause = min(pause * 2, Self.longest)
    }
  }

  private func fetch(nextTry pause: Duration) async {
    do throws(GateKeySource.FetchError) {
      try await runtime.fetchKeys()
      logger.notice("gate keys fetched")
    } catch {
      guard !Task.isCancelled else { return }
      logger.warning(
        "gate keys not fetched",
        metadata: [
          "reason": "\(error)", "next_try_seconds": .number(pause.components.seconds),
          "hint": "start the gate, or check gate.jwks and gate.ca_file",
        ])
    }
  }
}

extension GateIdentityVerifier.KeyState {
  /// The keys as a condition of readiness. Keys of an earlier fetch still verify identities.
  var check: ReadinessCheck {
    switch self {
    case .missing(nil): ReadinessCheck("gate keys", ready: false, "not fetched yet")
    case .missing(let fault?): ReadinessCheck("gate keys", ready: false, "\(fault)")
    case .present(let count, let since, nil):
      ReadinessCheck("gate keys", ready: true, "\(count) \(count == 1 ? "key" : "keys"), fetched \(since.wholeSecond)")
    case .present(let count, let since, let fault?):
      ReadinessCheck("gate keys", ready: true, "\(count) from \(since.wholeSecond), not fetched since: \(fault)")
    }
  }
}
