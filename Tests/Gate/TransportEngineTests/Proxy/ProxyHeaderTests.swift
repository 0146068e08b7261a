import Testing
import Transport

@testable import TransportEngine

@Suite("PROXY headers")
struct ProxyHeaderTests {
  /// The first bytes of version 2.
  static let signature: [UInt8] = [0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A]

  static func v2(_ start: UInt8, _ kind: UInt8, _ content: [UInt8], length: Int? = nil) -> [UInt8] {
    let length = length ?? content.count
    return signature + [start, kind, UInt8(length >> 8), UInt8(length & 0xFF)] + content
  }

  static let source4: [UInt8] = [192, 0, 2, 7]
  static let source6: [UInt8] = [0x20, 0x01, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7]
  /// Port 40000, then port 443.
  static let ports: [UInt8] = [0x9C, 0x40, 0x01, 0xBB]
  static let tcp4 = source4 + [198, 51, 100, 1] + ports
  static let tcp6 = source6 + source6 + ports
  static let mapped = [UInt8](repeating: 0, count: 10) + [0xFF, 0xFF] + source4
  static let authority: [UInt8] = [0x02, 0x00, 0x03, 0x61, 0x62, 0x63]
  static let noOperation: [UInt8] = [0x04, 0x00, 0x00]

  struct HeaderCase: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let bytes: [UInt8]
    let source: SocketAddress?

    init(_ title: String, _ bytes: [UInt8], _ source: SocketAddress?) {
      (testDescription, self.bytes, self.source) = (title, bytes, source)
    }
    init(_ line: String, _ source: SocketAddress?) { self.init(line, Array((line + "\r\n").utf8), source) }
  }

  static let valid: [HeaderCase] = [
    HeaderCase("PROXY TCP4 192.0.2.7 198.51.100.1 40000 443", .ipv4(source4, port: 40000)),
    HeaderCase("PROXY TCP4 192.0.2.7 198.51.100.1 0 65535", .ipv4(source4, port: 0)),
    HeaderCase("PROXY TCP6 2001:db8::7 2001:DB8:0:0::1 40000 443", .ipv6(source6, port: 40000)),
    HeaderCase("PROXY TCP6 ::ffff:192.0.2.7 ::1 40000 443", .ipv4(source4, port: 40000)),
    HeaderCase("PROXY UNKNOWN", nil),
    HeaderCase("PROXY UNKNOWN ffff:f...f:ffff any thing 1", nil),
    HeaderCase("v2 TCP over IPv4", v2(0x21, 0x11, tcp4), .ipv4(source4, port: 40000)),
    HeaderCase("v2 TCP over IPv6", v2(0x21, 0x21, tcp6), .ipv6(source6, port: 40000)),
    HeaderCase("v2 mapped address", v2(0x21, 0x21, mapped + source6 + ports), .ipv4(source4, port: 40000)),
    HeaderCase("v2 with values", v2(0x21, 0x11, tcp4 + authority + noOperation), .ipv4(source4, port: 40000)),
    HeaderCase("v2 LOCAL", v2(0x20, 0x00, []), nil),
    HeaderCase("v2 LOCAL with an address", v2(0x20, 0x11, tcp4), nil),
    HeaderCase("v2 LOCAL with anything", v2(0x20, 0x77, [1, 2, 3]), nil),
    HeaderCase("v2 UNSPEC", v2(0x21, 0x00, []), nil),
    HeaderCase("v2 UNSPEC with anything", v2(0x21, 0x00, [9, 9, 9]), nil),
    HeaderCase("v2 Unix stream", v2(0x21, 0x31, [UInt8](repeating: 0x2F, count: 216)), nil),
    HeaderCase("v2 longest", v2(0x20, 0x00, [UInt8](repeating: 7, count: 4080)), nil),
  ]

  @Test("A valid header names the client, whatever follows it; every prefix is incomplete", arguments: valid)
  func parses(_ header: HeaderCase) {
    let expected = ProxyHeader.Outcome.header(ProxyHeader(source: header.source, length: header.bytes.count))
    #expect(ProxyHeader.parse(header.bytes, .any) == expected)
    #expect(ProxyHeader.parse(header.bytes + [0x16, 0x03, 0x01], .any) == expected)
    #expect(ProxyHeader.parse(header.bytes + header.bytes, .any) == expected)
    for count in header.bytes.indices {
      #expect(ProxyHeader.parse(Array(header.bytes.prefix(count)), .any) == .incomplete, "\(count) bytes")
    }
  }

  @Test(
    "The endpoint of a private network is read from the values of AWS, Azure and Google Cloud",
    arguments: [
      ([0xEA, 0, 9, 1] + Array("vpce-0a1".utf8), "vpce-0a1"), ([0xEE, 0, 5, 1, 0x2A, 1, 0, 0], "298"),
      ([0xE0, 0, 8, 0, 0, 0, 0, 0, 0, 1, 2], "258"), ([0xEA, 0, 2, 2, 0x61], nil), ([0xEA, 0, 1, 1], nil),
      ([0xEA, 0, 3, 1, 0x61, 0x0A], nil), ([0xEA, 0, 66, 1] + [UInt8](repeating: 0x61, count: 65), nil),
      ([0xEE, 0, 4, 1, 1, 0, 0], nil), ([0xE0, 0, 7, 0, 0, 0, 0, 0, 0, 1], nil), ([0xEA, 0, 0], nil),
      ([0x04, 0, 1, 0, 0xE0, 0, 8, 255, 255, 255, 255, 255, 255, 255, 255], "18446744073709551615"),
    ] as [([UInt8], String?)])
  func endpoints(_ values: [UInt8], expected: String?) {
    guard case .header(let header) = ProxyHeader.parse(Self.v2(0x21, 0x11, Self.tcp4 + values), .any) else {
      Issue.record("no header")
      return
    }
    #expect(header.endpoint == expected)
  }

  @Test("Only the allowed version is accepted; the other one is refused at its first byte", arguments: valid)
  func versions(_ header: HeaderCase) throws {
    let isText = header.bytes[0] == UInt8(ascii: "P")
    let (own, other) = isText ? (ProxyProtocol.Version.v1, .v2) : (.v2, ProxyProtocol.Version.v1)
    #expect(ProxyHeader.parse(header.bytes, own) == ProxyHeader.parse(header.bytes, .any))
    for count in 1...header.bytes.count {
      guard case .fault = ProxyHeader.parse(Array(header.bytes.prefix(count)), other) else {
        Issue.record("\(count) bytes were accepted")
        return
      }
    }
  }

  static let brokenLines = [
    "PROXY", "PROXY ", "PROXY  UNKNOWN", "PROXY unknown", "proxy UNKNOWN", "PROXY UNKNOWNX", "PROXY TCP4",
    "PROXY TCP5 192.0.2.7 198.51.100.1 40000 443",
    "PROXY TCP4  192.0.2.7 198.51.100.1 40000 443", "PROXY TCP4 192.0.2.7 198.51.100.1 40000 443 ",
    "PROXY TCP4 192.0.2.7 198.51.100.1 40000", "PROXY TCP4 192.0.2.7 198.51.100.1 40000 443 1",
    "PROXY TCP4 192.0.2.256 198.51.100.1 40000 443", "PROXY TCP4 192.0.2 198.51.100.1 40000 443",
    "PROXY TCP4 192.0.02.7 198.51.100.1 40000 443", "PROXY TCP4 host 198.51.100.1 40000 443",
    "PROXY TCP4 192.0.2.7 host 40000 443",
    "PROXY TCP4 ::1 ::1 40000 443", "PROXY TCP6 192.0.2.7 198.51.100.1 40000 443", "PROXY TCP6 fe80::1%eth0 ::1 1 2",
    "PROXY TCP4 192.0.2.7 198.51.100.1 65536 443", "PROXY TCP4 192.0.2.7 198.51.100.1 040 443",
    "PROXY TCP4 192.0.2.7 198.51.100.1 -1 443", "PROXY TCP4 192.0.2.7 198.51.100.1 +1 443",
    "PROXY TCP4 192.0.2.7 198.51.100.1 1 ", "PROXY TCP4 192.0.2.7 198.51.100.1 1 99999",
    "PROXY\tTCP4 192.0.2.7 198.51.100.1 1 2", "PROXY UNKNOWN \u{0}", "PROXY UNKNOWN \u{7F}", "PROXY UNKNOWN é",
    "PROXY UNKNOWN a\rb", "PROXY UNKNOWN a\nb", "GET / HTTP/1.1",
    "PROXY UNKNOWN " + String(repeating: "x", count: 92),
  ]

  @Test("A malformed line is refused", arguments: brokenLines)
  func brokenText(_ line: String) {
    expectFault(Array((line + "\r\n").utf8))
  }

  @Test("A line has at most 107 bytes; a longer one is refused immediately")
  func longLine() {
    let longest = "PROXY UNKNOWN " + String(repeating: "x", count: 91)
    #expect(ProxyHeader.parse(Array((longest + "\r\n").utf8), .v1) == .header(ProxyHeader(source: nil, length: 107)))
    #expect(ProxyHeader.parse(Array((longest + "\r").utf8), .v1) == .incomplete)
    expectFault(Array((longest + "xx").utf8))
    expectFault(Array((longest + "x\r").utf8))
  }

  static let brokenBinary: [HeaderCase] = [
    HeaderCase("another version", v2(0x11, 0x11, tcp4), nil),
    HeaderCase("version 0", v2(0x01, 0x11, tcp4), nil),
    HeaderCase("an unknown command", v2(0x22, 0x11, tcp4), nil),
    HeaderCase("an unknown family", v2(0x21, 0x41, tcp4), nil),
    HeaderCase("UDP", v2(0x21, 0x12, tcp4), nil),
    HeaderCase("no transport", v2(0x21, 0x10, tcp4), nil),
    HeaderCase("a transport without family", v2(0x21, 0x01, tcp4), nil),
    HeaderCase("IPv4 without its last byte", v2(0x21, 0x11, Array(tcp4.dropLast())), nil),
    HeaderCase("IPv4 without ports", v2(0x21, 0x11, Array(tcp4.dropLast(4))), nil),
    HeaderCase("IPv6 with the length of IPv4", v2(0x21, 0x21, tcp4), nil),
    HeaderCase("a short Unix path", v2(0x21, 0x31, [UInt8](repeating: 0, count: 215)), nil),
    HeaderCase("a value beyond the header", v2(0x21, 0x11, tcp4 + [0x02, 0x00, 0x04, 0x61, 0x62, 0x63]), nil),
    HeaderCase("half the length of a value", v2(0x21, 0x11, tcp4 + [0x04, 0x00]), nil),
    HeaderCase("a type alone", v2(0x21, 0x11, tcp4 + [0x04]), nil),
    HeaderCase("a length over the limit", v2(0x20, 0x00, [], length: 4081), nil),
    HeaderCase("the maximum length", v2(0x21, 0x11, tcp4, length: 65535), nil),
    HeaderCase("a signature with one bit changed", [0x0D, 0x0A, 0x0D, 0x0A, 0x01], nil),
  ]

  @Test("A malformed binary header is refused", arguments: brokenBinary)
  func brokenBytes(_ header: HeaderCase) { expectFault(header.bytes) }

  @Test("A header with one changed byte is never parsed beyond its end")
  func changedBytes() {
    let header = Self.v2(0x21, 0x11, Self.tcp4 + Self.authority)
    for index in header.indices {
      for value in UInt8.min...UInt8.max {
        var bytes = header
        bytes[index] = value
        if case .header(let parsed) = ProxyHeader.parse(bytes, .any) { #expect(parsed.length <= bytes.count) }
      }
    }
  }

  private func expectFault(_ bytes: [UInt8], sourceLocation: SourceLocation = #_sourceLocation) {
    guard case .fault = ProxyHeader.parse(bytes, .any) else {
      Issue.record("\(ProxyHeader.parse(bytes, .any))", sourceLocation: sourceLocation)
      return
    }
  }
}
