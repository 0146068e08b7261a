internal import Glibc

extension SocketAddress {
  /// Parses an IPv4 or IPv6 address without brackets; `nil` for a name.
  public init?(literal text: String, port: UInt16) {
    var v4 = in_addr()
    var v6 = in6_addr()
    if inet_pton(AF_INET, text, &v4) == 1 {
      self = .ipv4(withUnsafeBytes(of: v4, Array.init), port: port)
    } else if inet_pton(AF_INET6, text, &v6) == 1 {
      self = .ipv6(withUnsafeBytes(of: v6, Array.init), port: port)
    } else {
      return nil
    }
  }

  /// Creates an address from 4 or 16 bytes. An IPv4-mapped IPv6 address becomes an IPv4 address.
  public static func ip(_ bytes: [UInt8], port: UInt16) -> SocketAddress {
    if bytes.count == 4 { return .ipv4(bytes, port: port) }
    let isMapped = bytes.prefix(10).allSatisfy { $0 == 0 } && bytes.dropFirst(10).prefix(2).allSatisfy { $0 == 0xFF }
    return isMapped ? .ipv4(Array(bytes.dropFirst(12)), port: port) : .ipv6(bytes, port: port)
  }
}
