internal import Commands
internal import NIOCore

extension PeerUser {
  /// The user at the other end of `channel`. A channel without addresses is closed already.
  init(of channel: any Channel) {
    guard let own = channel.localAddress.flatMap(Endpoint.init), let peer = channel.remoteAddress.flatMap(Endpoint.init)
    else {
      self = .closed
      return
    }
    self.init(own: own, peer: peer)
  }
}

extension PeerUser.Endpoint {
  init?(_ address: SocketAddress) {
    guard let port = address.port.flatMap(UInt16.init(exactly:)) else { return nil }
    switch address {
    // Which C module defines the members of these structures depends on how many files are compiled at a time, so their
    // bytes are read: the address follows family and port (ip(7)), and with IPv6 also the flow (ipv6(7)).
    case .v4(let known): self.init(address: withUnsafeBytes(of: known.address) { Array($0[4..<8]) }, port: port)
    case .v6(let known): self.init(address: withUnsafeBytes(of: known.address) { Array($0[8..<24]) }, port: port)
    case .unixDomainSocket: return nil
    }
  }
}
