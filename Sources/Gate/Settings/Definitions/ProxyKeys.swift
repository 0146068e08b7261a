internal import ConfigurationEngine

/// The settings of the section `listen` about proxies in front of the gate.
extension Keys {
  static let proxyProtocol = Key<GateSettings.ProxyHeaders>(
    "listen.proxy_protocol", .choice(), default: "off",
    "The PROXY header before TLS, which names the client's address. If set, every connection must have one."
  )
  static let trustedProxies = Key(
    "listen.trusted_proxies[]", .addressRange, example: "192.0.2.0/24",
    "Your proxies. With PROXY headers, other connections are closed. Their /attest/verify calls are not rate-limited."
  )
  static let forwardedFor = Key<GateSettings.ForwardedFor>(
    "listen.forwarded_for", .choice(), default: "ignore",
    "`X-Forwarded-For` of requests from `trusted_proxies`. With `trust`, its last address that is none of theirs is the "
      + "client's: in rate limits, in log lines, and for the upstream.")
}
