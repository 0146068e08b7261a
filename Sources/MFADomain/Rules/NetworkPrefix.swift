internal import Glibc

/// The part of an address that stays the same while somebody is at one place: 24 bits of IPv4, 48 of IPv6, which is what
/// a household or an office is given.
struct NetworkPrefix: Sendable, Hashable {
  /// `192.0.2.0/24` or `2001:db8:1::/48`.
  let text: String

  /// `nil` for what is no address.
  init?(_ address: String) {
    var old = in_addr()
    var new = in6_addr()
    if inet_pton(AF_INET, address, &old) == 1 {
      text = Self.text(ofIPv4: withUnsafeBytes(of: old) { Array($0) })
    } else if inet_pton(AF_INET6, address, &new) == 1 {
      let bytes = withUnsafeBytes(of: new) { Array($0) }
      // An address of IPv4 as a socket of IPv6 has it (RFC 4291, section 2.5.5.2).
      let isMapped = bytes[..<10].allSatisfy { $0 == 0 } && bytes[10] == 0xFF && bytes[11] == 0xFF
      text =
        isMapped
        ? Self.text(ofIPv4: Array(bytes[12...]))
        : stride(from: 0, to: 6, by: 2).map { String(UInt16(bytes[$0]) << 8 | UInt16(bytes[$0 + 1]), radix: 16) }
          .joined(separator: ":") + "::/48"
    } else {
      return nil
    }
  }

  private static func text(ofIPv4 bytes: [UInt8]) -> String { "\(bytes[0]).\(bytes[1]).\(bytes[2]).0/24" }
}
