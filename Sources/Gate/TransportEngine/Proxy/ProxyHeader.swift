internal import Transport

/// The header of HAProxy's PROXY protocol, versions 1 and 2, in which a proxy reports the client's
/// address before all other bytes.
struct ProxyHeader: Sendable, Hashable {
  /// The client's address; `nil` if the proxy opened the connection for itself (`LOCAL`), does not know the client
  /// (`UNKNOWN`, `UNSPEC`), or the client uses a Unix socket.
  let source: SocketAddress?
  /// The endpoint of a cloud provider's private network through which the client came; `nil` if the header names none.
  var endpoint: String?
  /// The length of the header in bytes.
  let length: Int

  enum Outcome: Sendable, Hashable {
    /// The bytes so far are the beginning of a header.
    case incomplete
    case header(ProxyHeader)
    /// Not a valid header. `rule` is for people and quotes no input.
    case fault(rule: String)
  }

  /// The maximum length of a header in bytes. Version 1 allows 107. For version 2 this is more than proxies send and
  /// less than the protocol allows.
  static let longest = 4096

  /// Parses the header at the start of `bytes`.
  static func parse(_ bytes: [UInt8], _ version: ProxyProtocol.Version) -> Outcome {
    do throws(ParseError) {
      let mayBeText = version != .v2 && isPrefix(bytes, of: ProxyHeaderV1.signature)
      let mayBeBinary = version != .v1 && isPrefix(bytes, of: ProxyHeaderV2.signature)
      if mayBeText, bytes.count >= ProxyHeaderV1.signature.count { return try ProxyHeaderV1.parse(bytes) }
      if mayBeBinary, bytes.count >= ProxyHeaderV2.signature.count { return try ProxyHeaderV2.parse(bytes) }
      return mayBeText || mayBeBinary ? .incomplete : .fault(rule: "not a PROXY header of an allowed version")
    } catch {
      return .fault(rule: error.rule)
    }
  }

  /// Whether `bytes` and `signature` are equal up to the shorter length.
  private static func isPrefix(_ bytes: [UInt8], of signature: [UInt8]) -> Bool {
    zip(bytes, signature).allSatisfy { $0 == $1 }
  }

  struct ParseError: Error {
    let rule: String
    init(_ rule: String) { self.rule = rule }
  }
}
