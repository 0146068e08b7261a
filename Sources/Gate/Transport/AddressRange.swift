/// The addresses that begin with the same bits (CIDR, RFC 4632): `192.0.2.0/24`, `2001:db8::/32`.
public struct AddressRange: Sendable, Hashable {
  private let bytes: [UInt8]
  private let length: Int

  /// - Parameters:
  ///   - bytes: of an address, 4 or 16, in network order; those bits that are not the prefix's do not matter.
  ///   - length: of the prefix, in bits.
  /// - Returns: `nil` if there are not so many bytes, or not so many bits.
  public init?(bytes: [UInt8], length: Int) {
    guard bytes.count == 4 || bytes.count == 16, (0...bytes.count * 8).contains(length) else { return nil }
    (self.bytes, self.length) = (bytes, length)
  }

  /// A Unix socket's client is in no range.
  public func contains(_ address: SocketAddress) -> Bool {
    switch address {
    case .ipv4(let other, _), .ipv6(let other, _): other.count == bytes.count && hasPrefix(of: other)
    case .unix: false
    }
  }

  private func hasPrefix(of other: [UInt8]) -> Bool {
    var left = length
    for (mine, theirs) in zip(bytes, other) {
      guard left > 0 else { break }
      let mask: UInt8 = left >= 8 ? 0xFF : ~(0xFF >> UInt8(left))
      guard (mine ^ theirs) & mask == 0 else { return false }
      left -= 8
    }
    return true
  }
}
