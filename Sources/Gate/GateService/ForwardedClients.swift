public import Transport

/// Finds the client of a request that came through the operator's proxies: balancers that end TLS, and name the client in
/// `X-Forwarded-For`.
///
/// Each proxy appends the address from which it got the request, so the last address that is no proxy's own is the only
/// one that no client can invent. What stands before it came from the client and is not read.
public struct ForwardedClients: Sendable {
  private let proxies: [AddressRange]
  /// The maximum number of addresses that are looked at, from the last one on.
  static let most = 32

  /// - Parameter proxies: The addresses of the operator's proxies.
  public init(through proxies: [AddressRange]) { self.proxies = proxies }

  /// Returns `peer` with the address of the client. Without `X-Forwarded-For`, and for a peer that is no proxy of the
  /// operator's, that is the peer's own.
  ///
  /// If the client's address cannot be read, the last proxy before it stands for it. If every address is a proxy's, the
  /// first one is the client.
  func client(of headers: HeaderFields, from peer: Peer) -> Peer {
    guard isProxy(peer.address), headers.contains("X-Forwarded-For") else { return peer }
    var client = peer
    let elements = headers.values(of: "X-Forwarded-For").reversed().lazy.flatMap { value in
      value.utf8.split(separator: UInt8(ascii: ",")).reversed()
    }
    var seen = 0
    for element in elements {
      let text = String(Substring(element)).trimmingSpaces()
      if text.isEmpty { continue }
      seen += 1
      guard seen <= Self.most, let address = Self.address(text) else { break }
      client.address = address
      if !isProxy(address) { break }
    }
    return client
  }

  private func isProxy(_ address: SocketAddress) -> Bool { proxies.contains { $0.contains(address) } }

  /// Reads an address as proxies write it: `192.0.2.1`, `192.0.2.1:443`, `2001:db8::1`, `[2001:db8::1]` or
  /// `[2001:db8::1]:443`.
  private static func address(_ text: Substring) -> SocketAddress? {
    if text.first == "[" {
      guard let end = text.firstIndex(of: "]"), let port = port(text[text.index(after: end)...]) else { return nil }
      let host = text[text.index(after: text.startIndex)..<end]
      return host.contains(":") ? literal(host, port) : nil
    }
    if let address = literal(text, 0) { return address }
    guard let colon = text.firstIndex(of: ":"), let port = port(text[colon...]) else { return nil }
    return literal(text[..<colon], port)
  }

  /// An IPv4-mapped IPv6 address is the IPv4 address, as it is for connections.
  private static func literal(_ text: Substring, _ port: UInt16) -> SocketAddress? {
    switch SocketAddress(literal: String(text), port: port) {
    case .ipv4(let bytes, _)?, .ipv6(let bytes, _)?: .ip(bytes, port: port)
    case .unix?, nil: nil
    }
  }

  /// Reads `:443`; nothing is port 0.
  private static func port(_ text: Substring) -> UInt16? {
    if text.isEmpty { return 0 }
    let digits = text.dropFirst()
    guard text.first == ":", (1...5).contains(digits.utf8.count), digits.utf8.allSatisfy({ (0x30...0x39).contains($0) })
    else { return nil }
    return UInt16(digits)
  }
}
