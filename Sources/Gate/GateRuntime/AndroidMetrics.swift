internal import AndroidKeyAttestation
internal import AttestGate
internal import ByteCoding
internal import Prometheus

/// Metrics of the list of revoked Android attestation certificates.
struct AndroidMetrics: Sendable {
  private let failures: CounterFamily
  private let revocations: CounterFamily

  init(registry: MetricsRegistry, revoked: RevokedCertificates) {
    failures = registry.counters(
      "sallyport_android_status_list_failures_total", "Failed attempts to read the list of revoked certificates.")
    revocations = registry.counters(
      "sallyport_android_keys_revoked_total", "Keys that were revoked because of the list of revoked certificates.")
    registry.values(
      "sallyport_android_status_list_timestamp_seconds",
      "When the list of revoked Android certificates in use was current; absent without one."
    ) { revoked.current.map { [Sample(Double($0.currentAt.seconds))] } ?? [] }
    registry.values(
      "sallyport_android_status_list_entries", "Certificates in the list of revoked ones; absent without one."
    ) { revoked.current.map { [Sample(Double($0.list.count))] } ?? [] }
    failures.counter().add(0)
    revocations.counter().add(0)
  }

  func statusListFailed() { failures.counter().add() }
  func revokedKey() { revocations.counter().add() }
}
