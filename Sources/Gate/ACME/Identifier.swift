internal import Transport
internal import TransportEngine

/// What a certificate is for: a DNS name (RFC 8555 section 9.7.7) or an IP address (RFC 8738 section 3).
public struct Identifier: Sendable, Hashable, Codable {
  public var type: String
  public var value: String

  /// Creates the identifier of a name: an IP address in text form, or else a DNS name. Equal names in other letters or
  /// in another form of an address make equal identifiers.
  public init(_ name: String) {
    if let address = SocketAddress(literal: name, port: 0) {
      (type, value) = (Self.ip, address.host)
    } else {
      (type, value) = (Self.dns, name.lowercased())
    }
  }

  /// Creates the identifier of an address of a certificate; `nil` unless it has 4 or 16 bytes.
  init?(address bytes: [UInt8]) {
    switch bytes.count {
    case 4: (type, value) = (Self.ip, SocketAddress.ipv4(bytes, port: 0).host)
    case 16: (type, value) = (Self.ip, SocketAddress.ipv6(bytes, port: 0).host)
    default: return nil
    }
  }

  init(type: String, value: String) { (self.type, self.value) = (type, value) }

  private static let dns = "dns"
  private static let ip = "ip"

  /// The same identifier as `init(_:)` makes it; `nil` for a type that the gate never orders.
  var normalized: Identifier? {
    let own = Identifier(value)
    return own.type == type ? own : nil
  }

  /// The address in network order, 4 or 16 bytes; `nil` for a DNS name.
  var address: [UInt8]? {
    guard type == Self.ip else { return nil }
    return switch SocketAddress(literal: value, port: 0) {
    case .ipv4(let bytes, _), .ipv6(let bytes, _): bytes
    case .unix, nil: nil
    }
  }

  /// The name that a validator of TLS-ALPN-01 sends (SNI): the DNS name, or the reverse mapping of the address, because
  /// SNI has no addresses (RFC 8738 section 6).
  var validationServerName: String {
    guard let address else { return value }
    guard address.count == 16 else {
      return address.reversed().map(String.init).joined(separator: ".") + ".in-addr.arpa"
    }
    let digits = address.reversed().flatMap { [$0 & 0xF, $0 >> 4] }
    return digits.map { String($0, radix: 16) }.joined(separator: ".") + ".ip6.arpa"
  }
}
