import Testing
import Transport

@testable import TransportEngine

@Suite("Address ranges and blocks")
struct AddressTests {
  private static func address(_ text: String) throws -> SocketAddress {
    try #require(SocketAddress(literal: text, port: 1))
  }

  private static func range(_ text: String, _ length: Int) throws -> AddressRange {
    switch try address(text) {
    case .ipv4(let bytes, _), .ipv6(let bytes, _): try #require(AddressRange(bytes: bytes, length: length))
    case .unix: throw ScriptedSocket.Failure(description: text)
    }
  }

  @Test(
    "A range contains the addresses with its first bits, and no others",
    arguments: [
      ("192.0.2.0", 24, "192.0.2.255", "192.0.3.0"), ("192.0.2.7", 32, "192.0.2.7", "192.0.2.6"),
      ("10.0.0.0", 9, "10.127.0.1", "10.128.0.1"), ("0.0.0.0", 0, "255.255.255.255", "::"),
      ("2001:db8::", 33, "2001:db8:7fff::1", "2001:db8:8000::1"), ("::1", 128, "::1", "::3"),
      ("::", 0, "ffff::", "0.0.0.0"),
    ])
  func ranges(start: String, length: Int, inside: String, outside: String) throws {
    let range = try Self.range(start, length)
    #expect(range.contains(try Self.address(inside)))
    #expect(!range.contains(try Self.address(outside)))
    #expect(!range.contains(.unix("/run/x")))
  }

  @Test("A range of another length is invalid", arguments: [(4, 33), (4, -1), (16, 129), (5, 8), (0, 0)])
  func noRange(count: Int, length: Int) {
    #expect(AddressRange(bytes: [UInt8](repeating: 0, count: count), length: length) == nil)
  }

  @Test(
    "A block is an IPv4 address or an IPv6 /64 network",
    arguments: [
      ("192.0.2.7", "192.0.2.7", true), ("192.0.2.7", "192.0.2.8", false),
      ("2001:db8:1:2::", "2001:db8:1:2:ffff:ffff:ffff:ffff", true), ("2001:db8:1:2::", "2001:db8:1:3::", false),
      ("::192.0.2.7", "192.0.2.7", false),
    ])
  func blocks(first: String, second: String, isSame: Bool) throws {
    #expect((AddressBlock(try Self.address(first)) == AddressBlock(try Self.address(second))) == isSame)
  }
}
