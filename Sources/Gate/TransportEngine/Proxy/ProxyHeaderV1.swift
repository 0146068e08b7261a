internal import Transport

/// Version 1: a line of text (section 2.1 of the protocol).
enum ProxyHeaderV1 {
  static let signature = Array("PROXY ".utf8)
  /// The maximum length of the line in bytes, CRLF included.
  private static let longest = 107

  static func parse(_ bytes: [UInt8]) throws(ProxyHeader.ParseError) -> ProxyHeader.Outcome {
    let line = bytes.prefix(longest).prefix { (0x20...0x7E).contains($0) }
    let end = bytes.dropFirst(line.count).prefix(2)
    guard !end.isEmpty || line.count < longest else { throw .init("version 1: the line is longer than 107 bytes") }
    if end.isEmpty { return .incomplete }
    guard end.first == UInt8(ascii: "\r") else { throw .init("version 1: a character other than printable ASCII") }
    guard line.count + 2 <= longest else { throw .init("version 1: the line is longer than 107 bytes") }
    guard end.count == 2 else { return .incomplete }
    guard end.last == UInt8(ascii: "\n") else { throw .init("version 1: CR without LF") }
    return .header(ProxyHeader(source: try source(in: line), length: line.count + 2))
  }

  private static func source(in line: ArraySlice<UInt8>) throws(ProxyHeader.ParseError) -> SocketAddress? {
    let words = line.split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false)
      .map { String(decoding: $0, as: UTF8.self) }
    // The protocol requires that everything after UNKNOWN is ignored.
    if words.count >= 2, words[1] == "UNKNOWN" { return nil }
    guard words.count == 6 else { throw .init("version 1: not a protocol, two addresses and two ports") }
    let source = try address(words[2], words[4], of: words[1])
    _ = try address(words[3], words[5], of: words[1])
    return source
  }

  private static func address(
    _ text: String, _ port: String, of family: String
  ) throws(ProxyHeader.ParseError) -> SocketAddress {
    let isNumber = !port.isEmpty && port.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    guard isNumber, port == "0" || !port.hasPrefix("0"), let number = UInt16(port) else {
      throw .init("version 1: a port that is not a number from 0 to 65535")
    }
    switch (family, SocketAddress(literal: text, port: number)) {
    case ("TCP4", .ipv4(let bytes, _)), ("TCP6", .ipv6(let bytes, _)): return .ip(bytes, port: number)
    case ("TCP4", _), ("TCP6", _): throw .init("version 1: an address that is not of \(family)")
    default: throw .init("version 1: a protocol other than TCP4, TCP6 and UNKNOWN")
    }
  }
}
