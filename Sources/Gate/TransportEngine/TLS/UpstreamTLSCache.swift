internal import Locking
internal import Transport

/// The TLS contexts for upstreams. Each is created once, because reading the system's authorities takes milliseconds.
final class UpstreamTLSCache: Sendable {
  private let contexts = LockedValue<[String: ClientTLS]>([:])

  func context(for tls: UpstreamTLS) throws(ServerTLS.SetupError) -> ClientTLS {
    let key = tls.caFile ?? ""
    if let known = contexts.withLock({ $0[key] }) { return known }
    let fresh = try ClientTLS(authorityFile: tls.caFile)
    contexts.withLock { $0[key] = fresh }
    return fresh
  }

  /// Returns whether new connections use `context`.
  func isCurrent(_ context: OpaquePointer?, for tls: UpstreamTLS) -> Bool {
    contexts.withLock { $0[tls.caFile ?? ""]?.withContext { $0 == context } == true }
  }
}
