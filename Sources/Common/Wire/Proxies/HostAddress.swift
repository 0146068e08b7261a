internal import ByteCoding
#if canImport(Glibc)
  internal import Glibc
#else
  internal import Darwin
#endif

/// The host of a URL as rules compare it: an address, or a name in lowercase.
enum HostAddress: Sendable, Hashable {
  /// 4 or 16 bytes in network order.
  case address([UInt8])
  /// Without the dot at the end.
  case name([UInt8])

  /// - Parameter host: As in a URL, with or without brackets. IPv4 addresses may have any form that the resolver reads,
  ///   such as `127.1`.
  init(_ host: String) {
    var bytes = host.utf8.prefix(1024).map(\.lowercasedASCII)
    if bytes.first == UInt8(ascii: "["), bytes.last == UInt8(ascii: "]") { bytes = Array(bytes.dropFirst().dropLast()) }
    // The zone of an IPv6 address (RFC 6874) chooses an interface.
    let text = String(decoding: bytes.prefix { $0 != UInt8(ascii: "%") }, as: UTF8.self)
    if let v6 = Self(ipv6: text) {
      self = v6
      return
    }
    if bytes.last == UInt8(ascii: ".") { bytes.removeLast() }
    var v4 = in_addr()
    let isOfAddress = bytes.allSatisfy { ForwardProxy.isDigit($0) || "abcdefx.".utf8.contains($0) }
    if isOfAddress, inet_aton(String(decoding: bytes, as: UTF8.self), &v4) == 1 {
      self = .address(withUnsafeBytes(of: v4) { Array($0) })
    } else {
      self = .name(bytes)
    }
  }

  /// Reads an IPv4 address in its usual form.
  init?(ipv4 text: String) {
    var address = in_addr()
    guard inet_pton(AF_INET, text, &address) == 1 else { return nil }
    self = .address(withUnsafeBytes(of: address) { Array($0) })
  }

  /// Reads an IPv6 address without brackets.
  init?(ipv6 text: String) {
    var address = in6_addr()
    guard inet_pton(AF_INET6, text, &address) == 1 else { return nil }
    self = .address(withUnsafeBytes(of: address) { Array($0) })
  }

  /// Whether the host is this machine: `localhost` and names below it (RFC 6761 section 6.3), 127.0.0.0/8, `::1`, and
  /// the addresses without an interface, which lead to the same place.
  var isLoopback: Bool {
    switch self {
    case .name(let name): name == Self.localhost || name.suffix(Self.localhost.count + 1) == [0x2E] + Self.localhost
    case .address(let bytes) where bytes.count == 4: bytes[0] == 127 || bytes == [0, 0, 0, 0]
    case .address(let bytes):
      // `::`, `::1` and IPv4 addresses mapped into IPv6 (RFC 4291 section 2.5.5.2).
      bytes.dropLast().allSatisfy { $0 == 0 } && bytes[15] <= 1
        || bytes.prefix(12) == Self.mapped[...] && HostAddress.address(Array(bytes.suffix(4))).isLoopback
    }
  }

  private static let localhost = Array("localhost".utf8)
  private static let mapped = [UInt8](repeating: 0, count: 10) + [0xFF, 0xFF]
}
