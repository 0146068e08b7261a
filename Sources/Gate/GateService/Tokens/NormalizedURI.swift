internal import ByteCoding

/// An `https` URI without query and fragment, in its normal form, so that two texts for the same resource are equal
/// (RFC 3986 sections 6.2.2 and 6.2.3).
struct NormalizedURI: Sendable, Hashable {
  /// The maximum number of bytes of a text.
  static let longest = 2048

  /// In lower case; an IPv6 address is in brackets.
  let host: String
  let port: UInt16
  /// Unreserved characters are decoded, other escapes are in capitals, and there are no dot segments.
  let path: String

  /// Returns `nil` unless `text` is an absolute `https` URI in ASCII without a user. Query and fragment are removed.
  init?(_ text: String) {
    let bytes = Array(text.utf8)
    let scheme = Array("https://".utf8)
    guard bytes.count <= Self.longest, bytes.allSatisfy({ (0x21...0x7E).contains($0) }),
      bytes.prefix(scheme.count).map(\.lowercasedASCII) == scheme
    else { return nil }
    let rest = bytes.dropFirst(scheme.count).prefix { $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") }
    let authority = rest.prefix { $0 != UInt8(ascii: "/") }
    self.init(authority: authority, path: rest[authority.endIndex...])
  }

  /// The resource `path` of the host in a `Host` field, which may include a port; `nil` if the field is malformed.
  init?(hostField: String, path: String) {
    guard hostField.utf8.count + path.utf8.count <= Self.longest else { return nil }
    self.init(authority: Array(hostField.utf8)[...], path: Array(path.utf8)[...])
  }

  private init?(authority: ArraySlice<UInt8>, path: ArraySlice<UInt8>) {
    let isBracketed = authority.first == UInt8(ascii: "[")
    let end =
      isBracketed
      ? authority.firstIndex(of: UInt8(ascii: "]")).map { $0 + 1 } ?? authority.endIndex
      : authority.firstIndex(of: UInt8(ascii: ":")) ?? authority.endIndex
    let host = authority[..<end]
    guard isBracketed ? Self.isAddress(host) : Self.isName(host), let port = Self.port(authority[end...]),
      let path = Self.normalized(path: path)
    else { return nil }
    self.host = String(decoding: host.map(\.lowercasedASCII), as: UTF8.self)
    self.port = port
    self.path = path
  }

  /// An empty port is that of the scheme.
  private static func port(_ suffix: ArraySlice<UInt8>) -> UInt16? {
    guard suffix.first ?? UInt8(ascii: ":") == UInt8(ascii: ":") else { return nil }
    let digits = suffix.dropFirst()
    guard digits.count <= 5, digits.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) else {
      return nil
    }
    return digits.isEmpty ? 443 : UInt16(String(decoding: digits, as: UTF8.self)).flatMap { $0 > 0 ? $0 : nil }
  }

  private static func isName(_ host: ArraySlice<UInt8>) -> Bool {
    !host.isEmpty && host.allSatisfy { isUnreserved($0) && $0 != UInt8(ascii: "~") }
  }

  private static func isAddress(_ host: ArraySlice<UInt8>) -> Bool {
    host.count > 2 && host.last == UInt8(ascii: "]")
      && host.dropFirst().dropLast().allSatisfy {
        hexValue($0) != nil || $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: ".")
      }
  }

  private static func normalized(path: ArraySlice<UInt8>) -> String? {
    guard let decoded = withoutNeedlessEscapes(path) else { return nil }
    var kept: [ArraySlice<UInt8>] = []
    let segments = decoded.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).dropFirst()
    for (index, segment) in segments.enumerated() {
      let isLast = index == segments.count - 1
      switch String(decoding: segment, as: UTF8.self) {
      case ".":
        if isLast { kept.append([]) }
      case "..":
        _ = kept.popLast()
        if isLast { kept.append([]) }
      default: kept.append(segment)
      }
    }
    return "/" + kept.map { String(decoding: $0, as: UTF8.self) }.joined(separator: "/")
  }

  /// Decodes the escapes of unreserved characters, and writes the others in capitals; `nil` if an escape is malformed.
  private static func withoutNeedlessEscapes(_ path: ArraySlice<UInt8>) -> [UInt8]? {
    var bytes: [UInt8] = []
    var rest = path
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "%") else {
        bytes.append(byte)
        continue
      }
      guard let high = rest.popFirst(), let low = rest.popFirst(), let first = hexValue(high),
        let second = hexValue(low)
      else { return nil }
      let value = first << 4 | second
      bytes += isUnreserved(value) ? [value] : [byte, uppercase(high), uppercase(low)]
    }
    return bytes
  }

  private static func isUnreserved(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
      UInt8(ascii: "~"):
      true
    default: false
    }
  }

  private static func hexValue(_ byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
    default: nil
    }
  }

  private static func uppercase(_ byte: UInt8) -> UInt8 {
    (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte) ? byte & ~0x20 : byte
  }
}
