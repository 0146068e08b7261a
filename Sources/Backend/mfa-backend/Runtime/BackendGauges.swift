internal import ByteCoding
internal import Commands
internal import MFADelivery
internal import MFADomain
internal import MFAService
internal import Metrics
internal import Observability

/// Metrics of the backend's state, read on each scrape.
struct BackendGauges {
  let runtime: BackendRuntime
  let health: StoreHealth

  func register(in exposition: MetricsExposition) {
    createCounters()
    createPushCounters()
    let started = Double(Timestamp.now().seconds)
    let registry = exposition.registry
    registry.values("mfa_build_info", "The running version.", labels: ["version"]) {
      [Sample(1, ProjectVersion.number)]
    }
    registry.values("mfa_start_time_seconds", "When the backend started.") { [Sample(started)] }
    registry.values("mfa_store_up", "Whether the store answered the last time.") { [health] in
      [Sample(health.check.ready ? 1 : 0)]
    }
    registry.values("mfa_gate_keys_up", "Whether the backend has keys to verify the gate's identities.") { [runtime] in
      [Sample(await runtime.keyState.check.ready ? 1 : 0)]
    }
    registry.values("mfa_sockets_active", "Open sockets.") { [live = runtime.live] in
      [Sample(Double(live.openSockets))]
    }
    let outbox = runtime.foundation.outbox
    let push = runtime.foundation.push
    registry.values("mfa_messages_queued", "Messages that wait for their first attempt.", labels: ["kind"]) {
      outbox.waiting.map { Sample(Double($0.queued), $0.kind) }
        + push.waiting.map { Sample(Double($0.queued), $0.service.rawValue) }
    }
    registry.values("mfa_messages_retrying", "Messages that wait for another attempt.", labels: ["kind"]) {
      outbox.waiting.map { Sample(Double($0.retrying), $0.kind) }
        + push.waiting.map { Sample(Double($0.retrying), $0.service.rawValue) }
    }
    registry.values(
      "mfa_push_service_up", "Whether a configured push service accepts the credentials, as far as it was asked.",
      labels: ["kind"]
    ) {
      push.waiting.map { Sample($0.fault == nil ? 1 : 0, $0.service.rawValue) }
    }
    registry.values("mfa_store_calls_active", "Database calls in progress or waiting.", labels: ["kind"]) {
      [store = runtime.foundation.store] in
      let calls = store.callsInProgress
      return [Sample(Double(calls.reads), "read"), Sample(Double(calls.writes), "write")]
    }
    registerReloads(in: registry)
    ProcessGauges.register(in: registry)
  }

  /// Counters exist with 0 from the start: without that, Prometheus does not see the first event. `OperationRegistry`
  /// creates those of the operations.
  private func createCounters() {
    for kind in ["read", "write"] {
      Metrics.Counter(label: "mfa_store_failures_total", dimensions: [("kind", kind)]).increment(by: 0)
    }
    for target in ["file", "syslog", "webhook"] {
      for label in ["mfa_audit_exported_total", "mfa_audit_export_failures_total"] {
        Metrics.Counter(label: label, dimensions: [("target", target)]).increment(by: 0)
      }
    }
    for kind in ["sms", "email"] {
      for outcome in ["sent", "failed", "expired", "dropped", "lost"] {
        Metrics.Counter(label: "mfa_messages_total", dimensions: [("kind", kind), ("outcome", outcome)]).increment(
          by: 0)
      }
    }
  }

  private func createPushCounters() {
    for service in PushAddress.Service.allCases {
      for outcome in ["sent", "failed", "expired", "dropped", "lost", "unregistered"] {
        Metrics.Counter(label: "mfa_messages_total", dimensions: [("kind", service.rawValue), ("outcome", outcome)])
          .increment(by: 0)
      }
    }
  }

  private func registerReloads(in registry: MetricsRegistry) {
    registry.values(
      "mfa_config_reloads_total", "Reloads of the configuration.", kind: .counter, labels: ["result"]
    ) { [runtime] in
      let figures = await runtime.reloadFigures
      return [Sample(Double(figures.done), "done"), Sample(Double(figures.refused), "refused")]
    }
    registry.values("mfa_config_last_reload_successful", "Whether the last reload was not refused.") { [runtime] in
      [Sample(await runtime.reloadFigures.isCurrent ? 1 : 0)]
    }
    registry.values("mfa_config_last_reload_success_timestamp_seconds", "When the configuration was loaded.") {
      [runtime] in [Sample(Double(await runtime.reloadFigures.loadedAt.seconds))]
    }
  }
}
