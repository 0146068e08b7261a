/// The part of the section `listen` about proxies before the gate.
extension Keys {
  static let proxyProtocol = Key<GateSettings.ProxyHeaders>(
    "listen.proxy_protocol", .choice(), default: "off",
    "The PROXY header, ahead of TLS, by which a TCP proxy before the gate says whose connection it is; then all must have it."
  )
  static let trustedProxies = Key(
    "listen.trusted_proxies[]", .addressRange, example: "192.0.2.0/24",
    "Your own proxies: their PROXY headers are believed, and where these are asked for connections from elsewhere are closed; their calls of /attest/verify do not count for their address."
  )
}
