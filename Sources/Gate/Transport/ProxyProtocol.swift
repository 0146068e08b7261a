/// The proxies that the gate trusts to name their clients in a PROXY header (HAProxy's PROXY protocol).
public struct ProxyProtocol: Sendable, Hashable {
  /// The versions of the PROXY protocol that a listener accepts.
  public enum Version: String, Sendable, Hashable, CaseIterable { case v1, v2, any }

  public let version: Version
  /// The addresses of the trusted proxies. The gate closes connections from other addresses.
  public let trusted: [AddressRange]

  public init(_ version: Version, trusting trusted: [AddressRange]) {
    self.version = version
    self.trusted = trusted
  }

  /// Returns `true` if `address` is that of a trusted proxy.
  public func trusts(_ address: SocketAddress) -> Bool { trusted.contains { $0.contains(address) } }
}
