/// The group of addresses that limits count as one client: an IPv4 address, the /64 of an IPv6 address, or all Unix
/// sockets.
///
/// An IPv6 host usually has a whole /64, so a limit for each IPv6 address would not bound one client.
public struct AddressBlock: Sendable, Hashable {
  private enum Family: UInt8 { case unix, ipv4, ipv6 }

  private let family: Family
  private let prefix: UInt64

  public init(_ address: SocketAddress) {
    switch address {
    case .ipv4(let bytes, _): (family, prefix) = (.ipv4, Self.number(bytes.prefix(4)))
    case .ipv6(let bytes, _): (family, prefix) = (.ipv6, Self.number(bytes.prefix(8)))
    case .unix: (family, prefix) = (.unix, 0)
    }
  }

  private static func number(_ bytes: ArraySlice<UInt8>) -> UInt64 { bytes.reduce(0) { $0 << 8 | UInt64($1) } }
}
