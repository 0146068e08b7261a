internal import ConfigurationEngine

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#else
  internal import Darwin
#endif

extension Kind where Value == GateSettings.AddressRange {
  /// An IP address or a range of addresses (RFC 4632).
  static var addressRange: Kind {
    Kind(
      name: "addresses", form: "an IP address, or a range such as `192.0.2.0/24` or `2001:db8::/32`",
      schema: .matching("^[0-9A-Fa-f:.]+(/[0-9]+)?$"), example: "192.0.2.0/24"
    ) { text throws(InvalidSetting) in
      let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
      guard let first = parts.first, let bytes = NetworkName.bytes(of: first) else {
        throw InvalidSetting("\(InvalidSetting.quoted(text)) is not an IP address or range")
      }
      guard parts.count == 2 else { return .unmapped(bytes, bytes.count * 8) }
      guard let length = Digits.value(of: parts[1]), length <= bytes.count * 8 else {
        throw InvalidSetting("\(InvalidSetting.quoted(text)) has no valid prefix length, 0 to \(bytes.count * 8)")
      }
      let prefix = NetworkName.cleared(bytes, behind: length)
      guard prefix == bytes else {
        throw InvalidSetting(
          "\(InvalidSetting.quoted(text)) has bits set after its prefix",
          suggestion: NetworkName.text(of: prefix) + "/\(length)")
      }
      return .unmapped(bytes, length)
    }
  }
}

extension GateSettings.AddressRange {
  /// Converts a range of IPv4-mapped IPv6 addresses (`::ffff:192.0.2.0/120`; RFC 4291 section 2.5.5.2) to IPv4,
  /// because the gate treats such clients as IPv4 clients.
  fileprivate static func unmapped(_ bytes: [UInt8], _ length: Int) -> Self {
    let mapping = [UInt8](repeating: 0, count: 10) + [0xFF, 0xFF]
    guard bytes.count == 16, length >= 96, bytes.starts(with: mapping) else {
      return Self(bytes: bytes, length: length)
    }
    return Self(bytes: Array(bytes[12...]), length: length - 96)
  }
}

extension NetworkName {
  /// Returns `bytes` with all bits after the first `length` cleared.
  fileprivate static func cleared(_ bytes: [UInt8], behind length: Int) -> [UInt8] {
    bytes.enumerated().map { index, byte in
      let left = length - index * 8
      return left >= 8 ? byte : left <= 0 ? 0 : byte & ~(0xFF >> UInt8(left))
    }
  }

  /// Returns the text form of an address of 4 or 16 bytes: `192.0.2.1`, `2001:db8::1` (RFC 5952).
  static func text(of bytes: [UInt8]) -> String {
    var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
    inet_ntop(bytes.count == 4 ? AF_INET : AF_INET6, bytes, &text, socklen_t(text.count))
    return String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
  }
}
