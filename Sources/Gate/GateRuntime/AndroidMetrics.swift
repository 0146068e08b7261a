internal import AndroidKeyAttestation
internal import AppAttest
internal import AttestGate
internal import ByteCoding
internal import Locking
internal import Observability

/// Metrics of the list of revoked Android attestation certificates.
struct AndroidMetrics: Sendable {
  private let failures: CounterFamily
  private let revocations: CounterFamily
  private let unreadable = LockedValue<Set<KeyID>>([])
  private let lastFault = LockedValue<String?>(nil)

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
    registry.values(
      "sallyport_android_keys_unreadable",
      "Keys that could not be compared with the list of revoked certificates, because their rows are damaged."
    ) { [unreadable] in
      // Without a list, nothing is compared.
      [Sample(revoked.configured == nil ? 0 : Double(unreadable.withLock(\.count)))]
    }
    failures.counter().add(0)
    revocations.counter().add(0)
  }

  /// The keys that the last complete comparison with the list, or one since, could not read.
  var unreadableKeys: Set<KeyID> {
    get { unreadable.withLock { $0 } }
    nonmutating set { unreadable.withLock { $0 = newValue } }
  }

  /// Why the last attempt to read the list, or to compare the keys with it, failed; `nil` if it succeeded.
  var fault: String? { lastFault.withLock { $0 } }

  /// Notes the result of an attempt to read the list and to compare the keys with it.
  func statusListRead(_ failure: StatusListFailure?) {
    lastFault.withLock { $0 = failure?.reason }
    if failure != nil { failures.counter().add() }
  }

  func revokedKey() { revocations.counter().add() }
}
