internal import Locking
internal import Transport

/// The TLS contexts for upstreams. Each is created once, because reading the system's authorities takes milliseconds.
final class UpstreamTLSCache: Sendable {
  /// Upstreams that differ only in their name share a context.
  private struct Files: Hashable {
    let authority: String?
    let identity: UpstreamTLS.Identity?

    init(_ tls: UpstreamTLS) { (authority, identity) = (tls.caFile, tls.identity) }
  }

  private let contexts = LockedValue<[Files: ClientTLS]>([:])

  func context(for tls: UpstreamTLS) throws(ServerTLS.SetupError) -> ClientTLS {
    let files = Files(tls)
    if let known = contexts.withLock({ $0[files] }) { return known }
    let fresh = try ClientTLS(for: tls)
    contexts.withLock { $0[files] = fresh }
    return fresh
  }

  /// Returns whether new connections use `context`.
  func isCurrent(_ context: OpaquePointer?, for tls: UpstreamTLS) -> Bool {
    contexts.withLock { $0[Files(tls)]?.withContext { $0 == context } == true }
  }
}
