/// What a limit counts as one client: an IPv4 address, or the /64 of an IPv6 address, since a client with one of its
/// addresses has all of them. Clients of Unix sockets count as one.
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
