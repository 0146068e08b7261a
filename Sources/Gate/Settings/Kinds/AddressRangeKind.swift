#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#else
  internal import Darwin
#endif

extension Kind where Value == GateSettings.AddressRange {
  /// An address, or a range of them (RFC 4632).
  static var addressRange: Kind {
    Kind(
      name: "addresses", form: "an IP address, or a range as `192.0.2.0/24` and `2001:db8::/32`",
      schema: .matching("^[0-9A-Fa-f:.]+(/[0-9]+)?$"), example: "192.0.2.0/24"
    ) { text throws(InvalidSetting) in
      let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
      guard let first = parts.first, let bytes = NetworkName.bytes(of: first) else {
        throw InvalidSetting("\(InvalidSetting.quoted(text)) is neither an IP address nor a range of them")
      }
      guard parts.count == 2 else { return .unmapped(bytes, bytes.count * 8) }
      guard let length = Digits.value(of: parts[1]), length <= bytes.count * 8 else {
        throw InvalidSetting("\(InvalidSetting.quoted(text)) has no length of a prefix, 0 to \(bytes.count * 8)")
      }
      let prefix = NetworkName.cleared(bytes, behind: length)
      guard prefix == bytes else {
        throw InvalidSetting(
          "\(InvalidSetting.quoted(text)) has bits behind its prefix",
          suggestion: NetworkName.text(of: prefix) + "/\(length)")
      }
      return .unmapped(bytes, length)
    }
  }
}

extension GateSettings.AddressRange {
  /// The range, as IPv4 if it is an IPv4-mapped one (`::ffff:192.0.2.0/120`; RFC 4291, section 2.5.5.2): the gate
  /// treats such a client as one with the IPv4 address.
  fileprivate static func unmapped(_ bytes: [UInt8], _ length: Int) -> Self {
    let mapping = [UInt8](repeating: 0, count: 10) + [0xFF, 0xFF]
    guard bytes.count == 16, length >= 96, bytes.starts(with: mapping) else {
      return Self(bytes: bytes, length: length)
    }
    return Self(bytes: Array(bytes[12...]), length: length - 96)
  }
}

extension NetworkName {
  /// The 4 or 16 bytes of an address in network order.
  static func bytes(of text: some StringProtocol) -> [UInt8]? {
    var v4 = in_addr()
    var v6 = in6_addr()
    if inet_pton(AF_INET, String(text), &v4) == 1 { return withUnsafeBytes(of: v4, Array.init) }
    return inet_pton(AF_INET6, String(text), &v6) == 1 ? withUnsafeBytes(of: v6, Array.init) : nil
  }

  /// `bytes` with zeros behind the first `length` bits.
  fileprivate static func cleared(_ bytes: [UInt8], behind length: Int) -> [UInt8] {
    bytes.enumerated().map { index, byte in
      let left = length - index * 8
      return left >= 8 ? byte : left <= 0 ? 0 : byte & ~(0xFF >> UInt8(left))
    }
  }

  fileprivate static func text(of bytes: [UInt8]) -> String {
    var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
    inet_ntop(bytes.count == 4 ? AF_INET : AF_INET6, bytes, &text, socklen_t(text.count))
    return String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
  }
}
