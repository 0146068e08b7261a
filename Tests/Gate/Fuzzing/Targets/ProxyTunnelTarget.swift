import Wire

extension FuzzTarget {
  static let proxyTunnel = FuzzTarget(
    name: "proxy-tunnel", longest: 1024, words: ["HTTP/1.1 200 ", "HTTP/1.0 407 ", "\r\n\r\n", "100 Continue"],
    seeds: { ProxyTunnelInvariants.seeds.map { Array($0.utf8) } }, accepts: ProxyTunnelInvariants.check)
}

/// The answer of a proxy to CONNECT: what it means depends on no cut.
enum ProxyTunnelInvariants {
  static let seeds = [
    "HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.0 200 Connection established\r\nVia: 1.1 proxy\r\n\r\n",
    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 None\r\n\r\n", "HTTP/1.1 407 Who\r\nProxy-Authenticate: Basic\r\n\r\n",
  ]

  static func check(_ input: [UInt8]) throws(InvariantViolation) -> Bool {
    let whole = outcome(of: [input[...]])
    let bytes = outcome(of: input.indices.map { input[$0...$0] })
    try require(whole == bytes, "pieces give the same result as the whole", "\(whole) \(bytes)")
    return whole == .success(true)
  }

  private static func outcome(of pieces: [ArraySlice<UInt8>]) -> Result<Bool, ProxyTunnelError> {
    let variables = ProxyVariables { $0 == "https_proxy" ? "http://user:secret@proxy.example:3128" : nil }
    return Result { () throws(ProxyTunnelError) in
      guard let proxy = try? variables.proxy(for: .https, host: "example.com", port: 443) else { return false }
      var tunnel = try ProxyTunnel(to: "example.com", port: 443, through: proxy)
      var isOpen = false
      for piece in pieces { isOpen = try tunnel.receive(piece) }
      return isOpen
    }
  }
}
