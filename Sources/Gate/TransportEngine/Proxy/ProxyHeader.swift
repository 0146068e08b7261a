internal import Transport

/// What a proxy says, ahead of everything else, about the client whose connection it hands on: the header of HAProxy's
/// PROXY protocol, versions 1 and 2.
struct ProxyHeader: Sendable, Hashable {
  /// The client; `nil` if the proxy speaks for itself (`LOCAL`), does not know (`UNKNOWN`, `UNSPEC`), or has its client
  /// from a Unix socket.
  let source: SocketAddress?
  /// Bytes of the header.
  let length: Int

  enum Outcome: Sendable, Hashable {
    /// All bytes so far belong to a header that goes on.
    case incomplete
    case header(ProxyHeader)
    /// `rule` for people, without what was sent.
    case fault(rule: String)
  }

  /// Bytes that a header may have: 107 in version 1; in version 2 more than proxies send, and less than the protocol
  /// could hold.
  static let longest = 4096

  /// Reads the header at the start of `bytes`.
  static func parse(_ bytes: [UInt8], _ version: ProxyProtocol.Version) -> Outcome {
    do throws(Fault) {
      let mayBeText = version != .v2 && isPrefix(bytes, of: ProxyHeaderV1.signature)
      let mayBeBinary = version != .v1 && isPrefix(bytes, of: ProxyHeaderV2.signature)
      if mayBeText, bytes.count >= ProxyHeaderV1.signature.count { return try ProxyHeaderV1.parse(bytes) }
      if mayBeBinary, bytes.count >= ProxyHeaderV2.signature.count { return try ProxyHeaderV2.parse(bytes) }
      return mayBeText || mayBeBinary ? .incomplete : .fault(rule: "no PROXY header of an allowed version")
    } catch {
      return .fault(rule: error.rule)
    }
  }

  /// Whether `bytes` and `signature` are the same as far as both go.
  private static func isPrefix(_ bytes: [UInt8], of signature: [UInt8]) -> Bool {
    zip(bytes, signature).allSatisfy { $0 == $1 }
  }

  struct Fault: Error {
    let rule: String
    init(_ rule: String) { self.rule = rule }
  }
}

extension SocketAddress {
  /// The address with `bytes`, 4 or 16 of them. An IPv4 address in IPv6 clothes is an IPv4 address.
  static func ip(_ bytes: [UInt8], port: UInt16) -> SocketAddress {
    if bytes.count == 4 { return .ipv4(bytes, port: port) }
    let isMapped = bytes.prefix(10).allSatisfy { $0 == 0 } && bytes.dropFirst(10).prefix(2).allSatisfy { $0 == 0xFF }
    return isMapped ? .ipv4(Array(bytes.dropFirst(12)), port: port) : .ipv6(bytes, port: port)
  }
}
