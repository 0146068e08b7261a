internal import Glibc

/// The part of an address that stays the same while a user is at one place: 24 bits of IPv4, 48 of IPv6, the size of
/// a household's or an office's network.
public struct NetworkPrefix: Sendable, Hashable {
  /// `192.0.2.0/24` or `2001:db8:1::/48`.
  let text: String

  /// Returns `nil` for text that is not an address.
  init?(_ address: String) {
    switch Self.bytes(of: address) {
    case let bytes? where bytes.count == 4: text = "\(bytes[0]).\(bytes[1]).\(bytes[2]).0/24"
    case let bytes?: text = Self.text(ofIPv6: bytes.prefix(6)) + "::/48"
    case nil: return nil
    }
  }

  /// The unit that a limit counts as one client: an IPv4 address, or the first 64 bits of an IPv6 address, since a
  /// client usually controls all addresses below them. Other text is used unchanged.
  public static func block(of address: String) -> String {
    guard let bytes = bytes(of: address) else { return address }
    if bytes.count == 4 { return bytes.map(String.init).joined(separator: ".") }
    return text(ofIPv6: bytes.prefix(8)) + "::/64"
  }

  /// 4 bytes or 16. An address of IPv4 as a socket of IPv6 has it is one of IPv4 (RFC 4291, section 2.5.5.2).
  private static func bytes(of address: String) -> [UInt8]? {
    var old = in_addr()
    var new = in6_addr()
    if inet_pton(AF_INET, address, &old) == 1 { return withUnsafeBytes(of: old) { Array($0) } }
    guard inet_pton(AF_INET6, address, &new) == 1 else { return nil }
    let bytes = withUnsafeBytes(of: new) { Array($0) }
    let isMapped = bytes[..<10].allSatisfy { $0 == 0 } && bytes[10] == 0xFF && bytes[11] == 0xFF
    return isMapped ? Array(bytes[12...]) : bytes
  }

  private static func text(ofIPv6 bytes: ArraySlice<UInt8>) -> String {
    stride(from: 0, to: bytes.count, by: 2).map { String(UInt16(bytes[$0]) << 8 | UInt16(bytes[$0 + 1]), radix: 16) }
      .joined(separator: ":")
  }
}
