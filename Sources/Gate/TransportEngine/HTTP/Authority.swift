internal import ByteCoding

#if canImport(Darwin)
  internal import Darwin
#else
  internal import Glibc
#endif

/// A host and an optional port, as in the `Host` field (RFC 9110 section 7.2).
enum Authority {
  /// Returns whether `text` is `host` or `host:port`.
  ///
  /// The host is a name of letters, digits, `-`, `.` and `_`, an IPv4 address, or an IPv6 address in brackets. The
  /// escapes and punctuation that RFC 3986 also allows are refused: no real name contains them, and two readers could
  /// resolve a comma or a percent sign to different hosts.
  static func isValid(_ text: UnsafeBufferPointer<UInt8>) -> Bool {
    let text = text[...]
    guard text.first == UInt8(ascii: "[") else {
      let name = text.prefix { $0 != .colon }
      return isName(name) && isPort(text[name.endIndex...])
    }
    guard let close = text.firstIndex(of: UInt8(ascii: "]")) else { return false }
    return isIPv6(text[..<close].dropFirst()) && isPort(text[close...].dropFirst())
  }

  /// Returns whether two valid authorities of `https` URIs name the same host and port. Port 443 may be left out.
  static func isSame(_ first: UnsafeBufferPointer<UInt8>, _ second: UnsafeBufferPointer<UInt8>) -> Bool {
    withoutDefaultPort(first).elementsEqual(withoutDefaultPort(second)) { $0.lowercasedASCII == $1.lowercasedASCII }
  }

  private static func withoutDefaultPort(_ authority: UnsafeBufferPointer<UInt8>) -> Bytes {
    authority.suffix(4).elementsEqual(":443".utf8) ? authority.dropLast(4) : authority[...]
  }

  private typealias Bytes = UnsafeBufferPointer<UInt8>.SubSequence

  private static func isName(_ name: Bytes) -> Bool {
    !name.isEmpty && name.count <= 253 && name.allSatisfy(ByteSet.hostName.contains)
  }

  private static func isIPv6(_ address: Bytes) -> Bool {
    var binary = in6_addr()
    return inet_pton(AF_INET6, String(decoding: address, as: UTF8.self), &binary) == 1
  }

  /// Returns whether `text` is empty, or a colon and a 16-bit number.
  private static func isPort(_ text: Bytes) -> Bool {
    guard text.first == .colon else { return text.isEmpty }
    var port: UInt32 = 0
    for digit in text.dropFirst() {
      guard digit.isDigit else { return false }
      port = port * 10 + UInt32(digit - UInt8(ascii: "0"))
      if port > UInt32(UInt16.max) { return false }
    }
    return text.count > 1
  }
}
