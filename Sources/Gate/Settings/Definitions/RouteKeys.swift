internal import ConfigurationEngine

/// The settings of the section `routes`.
extension Keys {
  static let routeKeys = [KeyDefinition](
    routePath, upstream, balance, stripPrefix, rewrite, routeHost, forward, upstreamCA, upstreamName,
    upstreamCertificate, upstreamKey, routeAudience, routeSubprotocol, healthPath, healthInterval, maxRouteHead,
    maxResponseHead, routeOrigins, routeCredentials)

  static let routePath = Key(
    "routes[].path", .routePath, default: "/", "The path of requests for this route; the longest match wins.")
  static let upstream = Key(
    "routes[].upstream", .upstreams, isRequired: true, example: "ws://127.0.0.1:8080",
    "The server for admitted sessions, or several that serve the same.")
  static let balance = Key<GateSettings.Route.Balance>(
    "routes[].balance", .choice(), default: "sessions",
    "How one of several servers is chosen: that with the fewest open sessions, or, with `device`, always the same one "
      + "for a device while it is available.")
  static let stripPrefix = Key(
    "routes[].strip_prefix", .boolean, default: "false",
    "Whether the path of the route is removed from the target: with `/chat`, the upstream gets `/room` for "
      + "`/chat/room`.")
  static let rewrite = Key(
    "routes[].rewrite", .routePath, example: "/v2",
    "What replaces the path of the route in the target. Not together with `strip_prefix`.")
  static let routeHost = Key(
    "routes[].host", .upstreamHost, default: "keep",
    "`Host` for the upstream: the client's, that of the upstream's address, or a name. `X-Forwarded-Host` is always the "
      + "client's.")
  static let forward = Key<GateSettings.Route.Forward>(
    "routes[].forward", .choice(), default: "upgrades",
    "What is forwarded. With `upgrades`, other requests get 426; with `all`, each needs its own assertion.")
  static let upstreamCA = Key(
    "routes[].upstream_tls.ca_file", .file, example: "internal-ca.pem",
    "The CA (PEM) for a `wss:` upstream, instead of the system's CAs.")
  static let upstreamName = Key(
    "routes[].upstream_tls.server_name", .serverName, example: "chat.internal.example",
    "The name in the certificate (subjectAltName) of a `wss:` upstream, if it is not the host.")
  static let upstreamCertificate = Key(
    "routes[].upstream_tls.cert_file", .file, example: "gate.pem",
    "The gate's own certificate (PEM, with its chain) for a `wss:` upstream that asks for one.")
  static let upstreamKey = Key(
    "routes[].upstream_tls.key_file", .file, example: "gate.key", "The key (PEM) of `cert_file`.")
  static let routeAudience = Key(
    "routes[].audience", .nameOrURL(form: "a name"), example: "chat",
    "`aud` of the identity assertions for this upstream, instead of `identity.audience`. Not for `tcp://`.")
  static let routeSubprotocol = Key(
    "routes[].subprotocol", .subprotocol, example: "mqtt",
    "The subprotocol of a `tcp://` service, for clients that offer it. By default `binary`, else the first offer.")
  static let healthPath = Key(
    "routes[].health.path", .routePath, example: "/healthz",
    "The path that a server of several answers with 200 to 399 while it is healthy. By default no server is asked.")
  static let healthInterval = Key(
    "routes[].health.interval", .duration(1000...600_000), default: "10s",
    "How often each server is asked. Two failures in a row take it out, and one success brings it back.")
  static let maxRouteHead = Key(
    "routes[].max_head", .size(1024...256 << 10), example: "4KiB",
    "The maximum length of the head of a request to this route, if it is less than `listen.max_head`; else 431.")
  static let maxResponseHead = Key(
    "routes[].max_response_head", .size(4096...1 << 20), default: "64KiB",
    "The maximum length of the head of an upstream's response, with a field for each 256 bytes; else 502.")
  static let routeOrigins = Key(
    "routes[].origins[]", .origin, example: "capacitor://localhost",
    "Origins of other hosts that may use the route, such as those of web views. With `any-with-assertion`, every "
      + "origin but `null`, of admitted devices.")
  static let routeCredentials = Key<GateSettings.Route.Carrier>(
    "routes[].credentials[]", .choice(), example: "subprotocol",
    "Where else, besides the header fields, a client may put its assertion when it opens a socket: `subprotocol` for "
      + "browsers, and `query`, which proxies in front of the gate may log.")
}
