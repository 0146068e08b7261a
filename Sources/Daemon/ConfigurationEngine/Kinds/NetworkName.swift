#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#else
  internal import Darwin
#endif

/// Grammar of addresses and host names.
public enum NetworkName {
  /// Whether `text` is an IPv4 address in four decimal parts.
  public static func isIPv4(_ text: some StringProtocol) -> Bool {
    var address = in_addr()
    // inet_pton(3) reads the text up to its first NUL only.
    return !text.utf8.contains(0) && inet_pton(AF_INET, String(text), &address) == 1
  }

  /// Whether `text` is an IPv6 address, without brackets.
  public static func isIPv6(_ text: some StringProtocol) -> Bool {
    var address = in6_addr()
    return !text.utf8.contains(0) && inet_pton(AF_INET6, String(text), &address) == 1
  }

  /// Returns the 4 or 16 bytes of an address in network order, or `nil` if `text` is not an address.
  public static func bytes(of text: some StringProtocol) -> [UInt8]? {
    guard !text.utf8.contains(0) else { return nil }
    var v4 = in_addr()
    var v6 = in6_addr()
    if inet_pton(AF_INET, String(text), &v4) == 1 { return withUnsafeBytes(of: v4, Array.init) }
    return inet_pton(AF_INET6, String(text), &v6) == 1 ? withUnsafeBytes(of: v6, Array.init) : nil
  }

  /// Whether a listener on one of two addresses also receives connections to the other, at the same port.
  ///
  /// Texts that are not addresses are compared as they are.
  public static func listenersMeet(_ first: String, _ second: String) -> Bool {
    guard let one = listeningBytes(of: first), let two = listeningBytes(of: second) else { return first == second }
    let isAny = { (bytes: [UInt8]) in bytes.allSatisfy { $0 == 0 } }
    // `::` accepts IPv4 as well.
    if one.count == 16, isAny(one) { return true }
    if two.count == 16, isAny(two) { return true }
    return one.count == two.count && (one == two || isAny(one) || isAny(two))
  }

  /// The bytes of an address. Those of an IPv4-mapped IPv6 address are the IPv4 address, at which its socket listens.
  private static func listeningBytes(of address: String) -> [UInt8]? {
    guard let bytes = bytes(of: address) else { return nil }
    return bytes.starts(with: [UInt8](repeating: 0, count: 10) + [0xFF, 0xFF]) ? Array(bytes[12...]) : bytes
  }

  /// Whether `text` is a host name: labels of 1 to 63 letters, digits and inner hyphens, at most 253 characters in
  /// total (RFC 1123 section 2.1). Underscores are accepted too, because service names in container networks contain
  /// them.
  public static func isHostName(_ text: some StringProtocol) -> Bool {
    guard !text.isEmpty, text.utf8.count <= 253 else { return false }
    return text.split(separator: ".", omittingEmptySubsequences: false).allSatisfy { label in
      (1...63).contains(label.utf8.count) && !label.hasPrefix("-") && !label.hasSuffix("-")
        && label.utf8.allSatisfy { isLetterOrDigit($0) || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: "_") }
    }
  }

  /// Whether `byte` is an ASCII letter or digit.
  public static func isLetterOrDigit(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"):
      true
    default: false
    }
  }
}
