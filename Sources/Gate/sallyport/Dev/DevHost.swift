internal import Glibc
internal import SimulatedDevice

/// The name or address under which other machines reach a development gate.
enum DevHost: Equatable {
  case name(String)
  /// 4 or 16 bytes.
  case address([UInt8], text: String)

  /// - Returns: `nil` for text that is neither, such as a URL or a name with a port.
  init?(_ text: String) {
    if let bytes = Self.bytes(ofAddress: text) {
      self = .address(bytes, text: text)
    } else if Self.isName(text) {
      self = .name(text.lowercased())
    } else {
      return nil
    }
  }

  /// The host in a URL.
  var urlText: String {
    switch self {
    case .name(let name): name
    case .address(let bytes, let text): bytes.count == 16 ? "[\(text)]" : text
    }
  }

  /// The names of the gate's certificate: this one, and the addresses of this machine, which may reach the same gate.
  var serverNames: ServerNames {
    switch self {
    case .name(let name): ServerNames(hosts: [name], addresses: MachineAddresses.all)
    case .address(let bytes, _): ServerNames(addresses: [bytes] + MachineAddresses.all.filter { $0 != bytes })
    }
  }

  /// The bytes of an IPv4 or IPv6 address; `nil` for other text.
  static func bytes(ofAddress text: String) -> [UInt8]? {
    var v4 = in_addr()
    if inet_pton(AF_INET, text, &v4) == 1 { return withUnsafeBytes(of: v4, Array.init) }
    var v6 = in6_addr()
    return inet_pton(AF_INET6, text, &v6) == 1 ? withUnsafeBytes(of: v6, Array.init) : nil
  }

  /// Whether `text` is a host name (RFC 1123 section 2.1) with at least one letter: digits alone look like an address.
  private static func isName(_ text: String) -> Bool {
    let labels = text.split(separator: ".", omittingEmptySubsequences: false)
    return text.utf8.count <= 253 && text.contains { $0.isLetter }
      && labels.allSatisfy { label in
        (1...63).contains(label.utf8.count) && label.first != "-" && label.last != "-"
          && label.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "-") }
      }
  }
}

/// The addresses under which other machines reach this one.
enum MachineAddresses {
  /// Those of interfaces that are up, without loopback and without addresses that need an interface's name.
  static var all: [[UInt8]] {
    var list: UnsafeMutablePointer<ifaddrs>?
    guard getifaddrs(&list) == 0 else { return [] }
    defer { freeifaddrs(list) }
    var found: [[UInt8]] = []
    var next = list
    while let entry = next?.pointee {
      next = entry.ifa_next
      guard entry.ifa_flags & UInt32(IFF_UP) != 0, entry.ifa_flags & UInt32(IFF_LOOPBACK) == 0,
        let address = entry.ifa_addr, let bytes = bytes(of: address), !isLinkLocal(bytes), !found.contains(bytes)
      else { continue }
      found.append(bytes)
    }
    return found
  }

  private static func bytes(of address: UnsafeMutablePointer<sockaddr>) -> [UInt8]? {
    switch Int32(address.pointee.sa_family) {
    case AF_INET:
      return address.withMemoryRebound(to: sockaddr_in.self, capacity: 1) { inet in
        withUnsafeBytes(of: inet.pointee.sin_addr) { Array($0) }
      }
    case AF_INET6:
      return address.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) { inet in
        withUnsafeBytes(of: inet.pointee.sin6_addr) { Array($0) }
      }
    default: return nil
    }
  }

  /// Whether it is in 169.254.0.0/16 or fe80::/10.
  private static func isLinkLocal(_ bytes: [UInt8]) -> Bool {
    bytes.count == 4 ? bytes[0] == 169 && bytes[1] == 254 : bytes[0] == 0xFE && bytes[1] & 0xC0 == 0x80
  }
}
