public import ByteCoding

/// The other end of a connection.
public struct Peer: Sendable {
  /// The address that the connection comes from. After a PROXY header, the address that the header names; of a request that
  /// came through a trusted proxy, the address that the proxy names.
  public var address: SocketAddress
  /// The client certificate, if the TLS handshake verified it against the configured authority; otherwise `nil`.
  public let verifiedCertificate: PeerCertificate?
  /// The TLS handshake, for the first request of a connection; otherwise `nil`.
  public var handshake: HandshakeTiming?
  /// The endpoint of a cloud provider's private network through which the client came, as a PROXY header of version 2
  /// names it; otherwise `nil`. At most 64 letters, digits, hyphens, periods and underscores.
  public let endpoint: String?
  /// The process that opened a connection to a Unix socket; `nil` for other connections.
  public var process: PeerProcess?

  public init(
    address: SocketAddress, verifiedCertificate: PeerCertificate? = nil, handshake: HandshakeTiming? = nil,
    endpoint: String? = nil
  ) {
    self.address = address
    self.endpoint = endpoint
    self.verifiedCertificate = verifiedCertificate
    self.handshake = handshake
  }
}

/// The process at the other end of a Unix socket, as it was when it connected (SO_PEERCRED in unix(7)).
public struct PeerProcess: Sendable, Hashable {
  /// The process id; 0 if the process is in another process namespace.
  public let id: Int32
  /// The effective user id.
  public let user: UInt32

  public init(id: Int32, user: UInt32) { (self.id, self.user) = (id, user) }
}

/// How long a TLS handshake took, and how long ago it was completed.
public struct HandshakeTiming: Sendable, Hashable {
  /// From accepting the connection, in whole milliseconds.
  public let duration: Duration
  /// From the end of the handshake to the end of the request's head, in whole milliseconds.
  public let age: Duration

  public init(duration: Duration, age: Duration) { (self.duration, self.age) = (duration, age) }
}

/// A client certificate that the TLS handshake verified.
public struct PeerCertificate: Sendable, Hashable {
  /// The certificate in DER.
  public let der: [UInt8]
  /// The SHA-256 of `der`, 32 bytes.
  public let fingerprint: [UInt8]
  /// The subject in the notation of RFC 2253.
  public let subject: String
  /// The first instant at which the handshake would be refused: the earliest `notAfter` of the verified chain
  /// (RFC 5280 section 6.1.3).
  public let expiresAt: Timestamp
  /// The SHA-256 digests, 32 bytes each, of the configured certificates in that chain. Without all of them the
  /// certificate is no longer accepted.
  public let authorities: Set<[UInt8]>
  /// Digests of issuer and serial number, 32 bytes each, of the certificates of that chain: what a list of revoked
  /// certificates names.
  public let links: Set<[UInt8]>
  /// Hashes of the issuers of the certificates of that chain, that of this certificate first: whose lists of revoked
  /// certificates count.
  public let issuers: [UInt32]

  public init(
    der: [UInt8], fingerprint: [UInt8], subject: String, expiresAt: Timestamp, authorities: Set<[UInt8]>,
    links: Set<[UInt8]> = [], issuers: [UInt32] = []
  ) {
    self.links = links
    self.issuers = issuers
    self.der = der
    self.fingerprint = fingerprint
    self.subject = subject
    self.expiresAt = expiresAt
    self.authorities = authorities
  }
}

/// The address of a socket, without DNS names.
public enum SocketAddress: Sendable, Hashable {
  /// Four bytes in network order, and a port.
  case ipv4([UInt8], port: UInt16)
  /// Sixteen bytes in network order, and a port. An IPv4 address that arrived through an IPv6 socket is an `ipv4`.
  case ipv6([UInt8], port: UInt16)
  /// The path of a Unix socket; empty for an unnamed client.
  case unix(String)
}

extension SocketAddress: CustomStringConvertible {
  /// `192.0.2.1:443`, `[2001:db8::1]:443` or `unix:/path`.
  public var description: String {
    switch self {
    case .ipv4(_, let port): "\(host):\(port)"
    case .ipv6(_, let port): "[\(host)]:\(port)"
    case .unix(let path): "unix:\(path)"
    }
  }

  /// The port; 0 for a Unix socket.
  public var port: UInt16 {
    switch self {
    case .ipv4(_, let port), .ipv6(_, let port): port
    case .unix: 0
    }
  }

  /// The address alone: `192.0.2.1`, `2001:db8::1` (RFC 5952) or the path of a Unix socket.
  public var host: String {
    switch self {
    case .ipv4(let bytes, _): Self.dotted(bytes)
    case .ipv6(let bytes, _): Self.canonical(bytes)
    case .unix(let path): path
    }
  }

  /// Writes four numbers and three dots in place, without an allocation.
  private static func dotted(_ bytes: [UInt8]) -> String {
    String(unsafeUninitializedCapacity: 16) { text in
      var count = 0
      // Four bytes make at most 15 characters.
      for byte in bytes.prefix(4) {
        if count > 0 {
          text[count] = UInt8(ascii: ".")
          count += 1
        }
        for divisor: UInt8 in [100, 10, 1] where byte >= divisor || divisor == 1 {
          text[count] = UInt8(ascii: "0") + byte / divisor % 10
          count += 1
        }
      }
      return count
    }
  }

  /// RFC 5952: lowercase, no leading zeros, the first longest run of two or more zero groups shortened to `::`.
  private static func canonical(_ bytes: [UInt8]) -> String {
    let groups = stride(from: 0, to: 16, by: 2).map { UInt16(bytes[$0]) << 8 | UInt16(bytes[$0 + 1]) }
    var longest = 0..<0
    var start = 0
    while start < groups.count {
      let end = groups[start...].firstIndex { $0 != 0 } ?? groups.count
      if end - start > max(longest.count, 1) { longest = start..<end }
      start = max(end, start) + 1
    }
    func text(_ groups: ArraySlice<UInt16>) -> String { groups.map { String($0, radix: 16) }.joined(separator: ":") }
    if longest.isEmpty { return text(groups[...]) }
    return text(groups[..<longest.lowerBound]) + "::" + text(groups[longest.upperBound...])
  }
}
