internal import ConfigurationEngine

/// The definition of every setting. The file's grammar, environment variables, suggestions, the JSON Schema and the
/// reference are all derived from it.
enum Keys {
  static let version = Key("version", .integer(1...1), default: "1", "The version of the configuration format.")

  static let address = Key("listen.address", .address, default: "::", "The address to listen on.")
  static let port = Key("listen.port", .port, default: "6200", "The port to listen on; 0 selects any free port.")
  static let loops = Key(
    "listen.loops", .countOrAuto(1...256), default: "auto",
    "The number of event loops; `auto` is one per processor that the gate may use.")
  static let maxRequestHead = Key(
    "listen.max_head", .size(8192...256 << 10), default: "16KiB",
    "The maximum length of the head of a request, with a field for each 256 bytes and at least 100; else 431.")

  static let certificate = Key(
    "tls.cert_file", .file, credential: "tls.cert", example: "fullchain.pem",
    "The server's certificate chain (PEM), leaf first. Required, unless `tls.acme` obtains certificates.")
  static let privateKey = Key(
    "tls.key_file", .file, credential: "tls.key", example: "privkey.pem",
    "The certificate's private key (PEM), not encrypted. Required with `tls.cert_file`.")
  static let furtherCertificate = Key(
    "tls.certificates[].cert_file", .file, isRequired: true, example: "api.pem",
    "The chain (PEM) of another certificate, for clients that request one of its names (SNI).")
  static let furtherKey = Key(
    "tls.certificates[].key_file", .file, isRequired: true, example: "api-key.pem",
    "That certificate's private key (PEM), not encrypted.")
  static let leastVersion = Key<GateSettings.TLS.Version>(
    "tls.min_version", .choice(), default: "1.2", "The minimum TLS version.")

  static let clientCA = Key(
    "debug_mtls.client_ca_file", .file, example: "client-ca/ca.pem",
    "The CA (PEM) of client certificates for debug builds. By default no client certificate is requested.")
  static let partialChain = Key(
    "debug_mtls.partial_chain", .boolean, default: "false",
    "Trust each CA of the client CA file, also an intermediate CA without its root. The root is not needed then.")
  static let revocationLists = Key(
    "debug_mtls.crl_file", .file, example: "client-ca/crl.pem",
    "Lists of revoked client certificates (PEM), one of each CA. Without a valid list of its CA, a certificate is refused."
  )
  static let allowedSubjects = Key(
    "debug_mtls.allow_subjects[]", .subject, example: "CN=MudApp Debug Client",
    "Subjects to admit. By default every certificate of the CA is admitted.")
  static let forbidWithProduction = Key(
    "debug_mtls.forbid_with_production", .boolean, default: "false",
    "Refuse to start if a client CA is set and an app has environment production.")

  static let certificateReload = Key<GateSettings.TLS.Reload>(
    "tls.reload", .choice(), default: "auto",
    "`auto` serves changed certificate, key and client CA files within seconds; `off` serves them after a reload."
  )

  static let enforcement = Key<GateSettings.AppAttest.Enforcement>(
    "app_attest.enforcement", .choice(), default: "enforce",
    "`monitor` logs and counts clients that fail verification, and admits them anonymously; `off` verifies nothing.")
  static let platform = Key<GateSettings.Platform>(
    "app_attest.apps[].platform", .choice(), default: "ios", "The platform of the app's devices.")
  static let teamID = Key(
    "app_attest.apps[].team_id", .teamID, isRequired: true, only: .ios, "The app's Apple Developer team ID.")
  static let bundleID = Key(
    "app_attest.apps[].bundle_id", .bundleID, isRequired: true, only: .ios, "The app's bundle identifier.")
  static let environments = Key<GateSettings.App.Environment>(
    "app_attest.apps[].environments[]", .choice(), default: "production", only: .ios,
    "The App Attest environments of the app's keys.")
  static let allowedCategories = Key<GateSettings.App.ValidationCategory>(
    "app_attest.apps[].validation_category.allow[]", .choice(), only: .ios, example: "app_store",
    "Validation categories (how the app was installed, from iOS 27) to admit. By default all.")
  static let missingCategory = Key<GateSettings.App.Missing>(
    "app_attest.apps[].validation_category.when_missing", .choice(), default: "accept", only: .ios,
    "The rule for devices that send no category: those before iOS 27.")
  static let attestationRoot = Key(
    "app_attest.trust.attestation_root_file", .file, example: "attestation-root.pem",
    "A root for simulated devices (PEM) instead of Apple's. Not allowed with an app in environment production.")
  static let receiptRoot = Key(
    "app_attest.trust.receipt_root_file", .file, example: "receipt-root.pem",
    "A root for receipts of simulated devices (PEM) instead of Apple's.")
  static let challengeTTL = Key(
    "app_attest.challenge_ttl", .duration(1000...600_000), default: "60s", "How long a nonce is valid.")
  static let challengeKeys = Key(
    "app_attest.challenge_keys_file", .file, credential: "challenge_keys", example: "challenge.keys",
    "The file of the challenge keys. By default the store creates and keeps them.")
  static let challengeKeyRotation = Key(
    "app_attest.challenge_key_rotation", .durationOrOff(600_000...31_536_000_000), default: "24h",
    "The age at which the challenge key in the store is replaced. Keys in a file are not.")
  static let counterWindow = Key(
    "app_attest.counter_window", .integer(0...63), default: "0",
    "How far a counter may be below the highest seen, each used once; for devices with parallel connections."
  )

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

  static let maxAge = Key(
    "session.max_age", .durationOrOff(1000...31_536_000_000), default: "12h",
    "The maximum age of a session, busy or not.")
  static let idleTimeout = Key(
    "session.idle_timeout", .durationOrOff(1000...86_400_000), default: "90s",
    "How long a peer may be silent before the session is closed. The answer to a ping counts as traffic.")
  static let ping = Key(
    "session.ping", .durationOrOff(1000...86_400_000), default: "30s",
    "How long a peer may be silent before the gate sends it a ping.")
  static let maxMessage = Key(
    "session.max_message", .size(1024...1 << 30), default: "32MiB",
    "The maximum payload of one message, as sent. A larger message closes the session with 1009.")

  static let closeOnRevoke = Key(
    "session.close_on_revoke", .durationOrOff(1000...60_000), default: "2s",
    "How soon each gate that shares the store closes the sessions of a revoked key.")

  static let store = Key(
    "store.url", .database("store"), example: "sqlite:///var/lib/sallyport/state.db",
    "The store of keys and counters. By default `state.db` in the state folder. Several gates can share PostgreSQL."
  )
  static let storePassword = Key(
    "store.password_file", .file, credential: "store.password", example: "store.password",
    "A file with the PostgreSQL password on its first line. It is read for each new connection.")
  static let mostWaitingForStore = Key(
    "store.max_waiting", .integer(1...1_000_000), default: "4096",
    "The maximum number of waiting store calls, each for reads and writes. More are refused as `overloaded`.")
  static let pruneUnusedAfter = Key(
    "store.prune_unused_after", .durationOrOff(86_400_000...31_536_000_000), default: "off",
    "How long a key may stay unused before it is removed. Its device must then attest a new key.")
  static let keepDecisions = Key(
    "store.keep_decisions", .durationOrOff(3_600_000...31_536_000_000), default: "30d",
    "How long the decisions about a key, with the client's address, are kept for `sallyport keys decisions` and the "
      + "console. `off` keeps none.")
  static let mostDecisionsOfKey = Key(
    "store.max_decisions_per_key", .integer(1...100_000), default: "1000",
    "How many admissions and how many refusals of one key are kept at most. The oldest leave.")
  static let mostDecisions = Key(
    "store.max_decisions", .integer(1...1_000_000_000), default: "1000000",
    "How many decisions are kept in all, of about 300 bytes each. The oldest leave.")
  static let issuer = Key(
    "identity.issuer", .nameOrURL(form: "a name, or the URL of the gate"), default: "sallyport",
    "`iss` of the identity assertions for upstreams.")
  static let audience = Key(
    "identity.audience", .nameOrURL(form: "a name"), default: "sallyport-upstream",
    "`aud` of the identity assertions for upstreams, unless the route sets its own.")
  static let identityKeyLife = Key(
    "identity.key_life", .durationOrOff(600_000...31_536_000_000), default: "90d",
    "How long an identity signing key is used before it is replaced.")
  static let identityKeyOverlap = Key(
    "identity.key_overlap", .duration(300_000...604_800_000), default: "1h",
    "How long an identity signing key is published before its first use, and after its last.")
  static let strippedHeaders = Key(
    "identity.strip_headers[]", .fieldName, example: "X-Internal-User",
    "Additional header fields to remove from requests to the upstream.")
  static let keptHeaders = Key(
    "identity.keep_headers[]", .plainFieldName, example: "X-App-Version",
    "Header fields of clients that the gate would remove because other gateways set fields of such names. The upstream "
      + "must not trust them.")
  static let adminListen = Key(
    "admin.listen", .adminAddress, example: "unix:/run/sallyport/admin.sock",
    "The admin server's address. A Unix socket is accessible only to its user (mode 0600). By default there is none."
  )
  static let adminGroup = Key(
    "admin.group", .text(form: "the name of a group"), example: "sallyport-admin",
    "The group whose members may use the admin socket too (mode 0660). By default only its user may.")
  static let adminToken = Key(
    "admin.token_file", .file, credential: "admin.token", example: "admin.token",
    "A file with the admin token on its first line. Required for a loopback address, not allowed for a socket.")
  static let unreadyDelay = Key(
    "shutdown.unready_delay", .duration(0...300_000), default: "0s",
    "How long the gate accepts sessions after SIGTERM while `/readyz` already fails, for load balancers to notice."
  )
  static let drainTimeout = Key(
    "shutdown.drain_timeout", .duration(100...3_600_000), default: "8s",
    "How long open sessions may take to close after SIGTERM.")
  static let linger = Key(
    "shutdown.linger", .duration(0...604_800_000), default: "10m",
    "How long the old process keeps its sessions after `sallyport upgrade`; then it closes them with 1012.")
}

extension ElementCondition {
  static let ios = ElementCondition("platform", is: "ios", default: "ios")
  static let android = ElementCondition("platform", is: "android", default: "ios")
}
