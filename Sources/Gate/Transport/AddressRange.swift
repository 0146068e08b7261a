/// A range of addresses with a common prefix (CIDR, RFC 4632): `192.0.2.0/24`, `2001:db8::/32`.
public struct AddressRange: Sendable, Hashable {
  private let bytes: [UInt8]
  private let length: Int

  /// - Parameters:
  ///   - bytes: The bytes of an address in network order, 4 or 16. Bits after the prefix are ignored.
  ///   - length: The length of the prefix in bits.
  /// - Returns: `nil` unless there are 4 or 16 bytes and `length` fits them.
  public init?(bytes: [UInt8], length: Int) {
    guard bytes.count == 4 || bytes.count == 16, (0...bytes.count * 8).contains(length) else { return nil }
    (self.bytes, self.length) = (bytes, length)
  }

  /// Returns `true` if `address` is in this range. A Unix socket is in no range.
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
