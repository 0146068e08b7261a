/// Which proxies are believed about the clients whose connections they hand on (HAProxy's PROXY protocol).
public struct ProxyProtocol: Sendable, Hashable {
  public enum Version: String, Sendable, Hashable, CaseIterable { case v1, v2, any }

  public let version: Version
  /// A peer from any other address is refused: by default no peer is trusted.
  public let trusted: [AddressRange]

  public init(_ version: Version, trusting trusted: [AddressRange]) {
    self.version = version
    self.trusted = trusted
  }

  public func trusts(_ address: SocketAddress) -> Bool { trusted.contains { $0.contains(address) } }
}
