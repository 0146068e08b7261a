internal import ConfigurationEngine

/// The settings of the section `listen`.
extension Keys {
  static let listenKeys = [KeyDefinition](
    address, port, loops, proxyProtocol, trustedProxies, forwardedFor, maxRequestHead)

  static let address = Key("listen.address", .address, default: "::", "The address to listen on.")
  static let port = Key("listen.port", .port, default: "6200", "The port to listen on; 0 selects any free port.")
  static let loops = Key(
    "listen.loops", .countOrAuto(1...256), default: "auto",
    "The number of event loops; `auto` is one per processor that the gate may use.")
  static let proxyProtocol = Key<GateSettings.ProxyHeaders>(
    "listen.proxy_protocol", .choice(), default: "off",
    "The PROXY header before TLS, which names the client's address. If set, every connection must have one."
  )
  static let trustedProxies = Key(
    "listen.trusted_proxies[]", .addressRange, example: "192.0.2.0/24",
    "Your proxies. With PROXY headers, other connections are closed. Their /attest calls have no limit per address."
  )
  static let forwardedFor = Key<GateSettings.ForwardedFor>(
    "listen.forwarded_for", .choice(), default: "ignore",
    "`X-Forwarded-For` of requests from `trusted_proxies`. With `trust`, its last address that is none of theirs is the "
      + "client's: in rate limits, in log lines, and for the upstream.")
  static let maxRequestHead = Key(
    "listen.max_head", .size(8192...256 << 10), default: "16KiB",
    "The maximum length of the head of a request, with a field for each 256 bytes and at least 100; else 431.")
}
