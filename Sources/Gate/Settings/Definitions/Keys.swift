internal import ByteCoding

/// Every setting, once. The file's grammar, the environment's names, the spelling suggestions, the JSON Schema and the
/// reference all come from here.
enum Keys {
  static let version = Key("version", .integer(1...1), default: "1", "The version of this format.")

  static let address = Key("listen.address", .address, default: "::", "The address to listen on.")
  static let port = Key("listen.port", .port, default: "6200", "The port to listen on; 0 takes any free one.")
  static let loops = Key("listen.loops", .countOrAuto(1...256), default: "auto", "Event loops; `auto` is one per core.")

  static let certificate = Key(
    "tls.cert_file", .file, isRequired: true, credential: "tls.cert", example: "fullchain.pem",
    "The server's certificate and its chain, PEM.")
  static let privateKey = Key(
    "tls.key_file", .file, isRequired: true, credential: "tls.key", example: "privkey.pem",
    "The certificate's private key, PEM, not encrypted.")
  static let furtherCertificate = Key(
    "tls.certificates[].cert_file", .file, isRequired: true, example: "api.pem",
    "A further certificate and its chain, PEM, for clients that ask for a name that it is good for (SNI).")
  static let furtherKey = Key(
    "tls.certificates[].key_file", .file, isRequired: true, example: "api-key.pem",
    "That certificate's private key, PEM, not encrypted.")
  static let leastVersion = Key<GateSettings.TLS.Version>(
    "tls.min_version", .choice(), default: "1.2", "The least version of TLS.")

  static let clientCA = Key(
    "debug_mtls.client_ca_file", .file, example: "client-ca/ca.pem",
    "The authority of debug builds' client certificates, PEM. Without it none is asked for.")
  static let allowedSubjects = Key(
    "debug_mtls.allow_subjects[]", .text(form: "a subject in the form of RFC 2253: `CN=MudApp Debug Client`"),
    example: "CN=MudApp Debug Client",
    "Subjects that are let in; without any, whatever the authority signed.")
  static let forbidWithProduction = Key(
    "debug_mtls.forbid_with_production", .boolean, default: "false",
    "Refuse to start with an authority for client certificates beside an app with environment production.")

  static let certificateReload = Key<GateSettings.TLS.Reload>(
    "tls.reload", .choice(), default: "auto",
    "With `auto`, changed files of certificate, key and client authority are served within seconds; with `off`, after a reload."
  )

  static let enforcement = Key<GateSettings.AppAttest.Enforcement>(
    "app_attest.enforcement", .choice(), default: "enforce",
    "`monitor` logs and counts clients that it would refuse and admits them anonymously; `off` verifies nothing.")
  static let teamID = Key(
    "app_attest.apps[].team_id", .teamID, isRequired: true, "The app's Apple Developer team.")
  static let bundleID = Key(
    "app_attest.apps[].bundle_id", .bundleID, isRequired: true, "The app's bundle identifier.")
  static let environments = Key<GateSettings.App.Environment>(
    "app_attest.apps[].environments[]", .choice(), default: "production",
    "Which of Apple's environments the app's keys may come from.")
  static let allowedCategories = Key<GateSettings.App.ValidationCategory>(
    "app_attest.apps[].validation_category.allow[]", .choice(), example: "app_store",
    "Ways of installation that are let in, as iOS 27 tells them; without any, all are.")
  static let missingCategory = Key<GateSettings.App.Missing>(
    "app_attest.apps[].validation_category.when_missing", .choice(), default: "accept",
    "What happens to devices that tell none: those before iOS 27.")
  static let attestationRoot = Key(
    "app_attest.trust.attestation_root_file", .file, example: "attestation-root.pem",
    "A root for simulated devices instead of Apple's, PEM. Not beside an app with environment production.")
  static let receiptRoot = Key(
    "app_attest.trust.receipt_root_file", .file, example: "receipt-root.pem",
    "The same for the receipts of simulated devices.")
  static let challengeTTL = Key(
    "app_attest.challenge_ttl", .duration(1000...600_000), default: "60s", "How long a nonce is valid.")
  static let challengeKeys = Key(
    "app_attest.challenge_keys_file", .file, credential: "challenge_keys", example: "challenge.keys",
    "The keys that nonces are made with. Without it the store makes and keeps them.")
  static let challengeKeyRotation = Key(
    "app_attest.challenge_key_rotation", .durationOrOff(600_000...31_536_000_000), default: "24h",
    "How old the key that makes nonces gets before the gates replace it; those of a file are yours to replace.")
  static let counterWindow = Key(
    "app_attest.counter_window", .integer(0...63), default: "0",
    "How far a counter may lie behind the greatest one seen, each taken once; for devices that open several sockets at once."
  )

  static let routePath = Key(
    "routes[].path", .routePath, default: "/", "Which requests the route takes; the longest match wins.")
  static let upstream = Key(
    "routes[].upstream", .upstream, isRequired: true, example: "ws://127.0.0.1:8080", "Where admitted sessions go.")
  static let forward = Key<GateSettings.Route.Forward>(
    "routes[].forward", .choice(), default: "upgrades",
    "What is forwarded: with `upgrades` an ordinary request gets 426, with `all` it needs an assertion of its own.")
  static let upstreamCA = Key(
    "routes[].upstream_tls.ca_file", .file, example: "internal-ca.pem",
    "The authority of a `wss:` upstream, PEM, instead of the system's.")
  static let upstreamName = Key(
    "routes[].upstream_tls.server_name", .serverName, example: "chat.internal.example",
    "The name that a `wss:` upstream's certificate has as an alternative name, instead of its host.")

  static let routeAudience = Key(
    "routes[].audience", .text(form: "a name"), example: "chat",
    "`aud` of the assertions that this route's upstream gets, instead of `identity.audience`. Not for `tcp://`.")

  static let maxAge = Key(
    "session.max_age", .durationOrOff(1000...31_536_000_000), default: "12h",
    "After which a session is closed, however busy.")
  static let idleTimeout = Key(
    "session.idle_timeout", .durationOrOff(1000...86_400_000), default: "90s",
    "How long a side may be silent; the answer to a ping counts as sound.")
  static let ping = Key(
    "session.ping", .durationOrOff(1000...86_400_000), default: "30s",
    "How long a side may be silent before it is sent a ping.")
  static let maxMessage = Key(
    "session.max_message", .size(1024...1 << 30), default: "32MiB",
    "The payload of one message, as sent; more closes the session with 1009.")

  static let closeOnRevoke = Key(
    "session.close_on_revoke", .durationOrOff(1000...60_000), default: "2s",
    "How soon the sockets of a revoked key are closed, on each gate that shares the store.")

  static let store = Key(
    "store.url", .store, example: "sqlite:///var/lib/sallyport/state.db",
    "Where keys and counters are kept. Without it: `state.db` in the state folder. A PostgreSQL may serve several gates."
  )
  static let storePassword = Key(
    "store.password_file", .file, credential: "store.password", example: "store.password",
    "The password of the PostgreSQL, in a file of its own.")
  static let mostWaitingForStore = Key(
    "store.max_waiting", .integer(1...1_000_000), default: "4096",
    "How many calls may wait for the store, for reads and writes each; more are refused as `overloaded`.")
  static let pruneUnusedAfter = Key(
    "store.prune_unused_after", .durationOrOff(86_400_000...31_536_000_000), default: "off",
    "How long a key may stay unused before it is removed for good: its device has to attest a new one.")
  static let issuer = Key(
    "identity.issuer", .text(form: "a name, or the URL of the gate"), default: "sallyport",
    "`iss` of the assertions that upstreams get.")
  static let audience = Key(
    "identity.audience", .text(form: "a name"), default: "sallyport-upstream",
    "`aud` of the assertions that upstreams get, unless their route has an audience of its own.")
  static let identityKeyLife = Key(
    "identity.key_life", .durationOrOff(600_000...31_536_000_000), default: "90d",
    "How long a key signs the assertions before another one takes its place.")
  static let identityKeyOverlap = Key(
    "identity.key_overlap", .duration(300_000...604_800_000), default: "1h",
    "How long a new key is published before it signs, and an old one after it has.")
  static let strippedHeaders = Key(
    "identity.strip_headers[]", .fieldName, example: "X-Internal-User",
    "Header fields to keep from the upstream, beside those that always are.")
  static let adminListen = Key(
    "admin.listen", .adminAddress, example: "unix:/run/sallyport/admin.sock",
    "Where operators' commands reach the gate. A Unix socket is its user's alone (mode 0600). Without it there is none."
  )
  static let adminToken = Key(
    "admin.token_file", .file, credential: "admin.token", example: "admin.token",
    "The token that a loopback address asks for, on the first line of a file. Not for a Unix socket.")
  static let unreadyDelay = Key(
    "shutdown.unready_delay", .duration(0...300_000), default: "0s",
    "How long after SIGTERM `/readyz` already says no while sessions are still taken on: for a load balancer to notice."
  )
  static let drainTimeout = Key(
    "shutdown.drain_timeout", .duration(100...3_600_000), default: "8s",
    "How long open sessions have to end after SIGTERM.")
  static let linger = Key(
    "shutdown.linger", .duration(0...604_800_000), default: "10m",
    "How long the sessions of the old process may go on after `sallyport upgrade`; then they are closed with 1012.")
}

/// The table of settings.
public enum SettingsTable {
  /// Every key, in the order in which documentation tells them.
  public static let keys: [KeyDefinition] = [
    Keys.version.definition,
    Keys.address.definition, Keys.port.definition, Keys.loops.definition,
    Keys.proxyProtocol.definition, Keys.trustedProxies.definition,
    Keys.certificate.definition, Keys.privateKey.definition, Keys.furtherCertificate.definition,
    Keys.furtherKey.definition, Keys.leastVersion.definition,
    Keys.certificateReload.definition,
    Keys.clientCA.definition, Keys.allowedSubjects.definition, Keys.forbidWithProduction.definition,
    Keys.enforcement.definition, Keys.teamID.definition, Keys.bundleID.definition, Keys.environments.definition,
    Keys.allowedCategories.definition, Keys.missingCategory.definition,
    Keys.attestationRoot.definition, Keys.receiptRoot.definition, Keys.challengeTTL.definition,
    Keys.challengeKeys.definition, Keys.challengeKeyRotation.definition, Keys.counterWindow.definition,
    Keys.routePath.definition, Keys.upstream.definition, Keys.forward.definition, Keys.upstreamCA.definition,
    Keys.upstreamName.definition, Keys.routeAudience.definition,
    Keys.maxAge.definition, Keys.idleTimeout.definition, Keys.ping.definition, Keys.maxMessage.definition,
    Keys.closeOnRevoke.definition,
    Keys.store.definition, Keys.storePassword.definition, Keys.mostWaitingForStore.definition,
    Keys.pruneUnusedAfter.definition,
    Keys.globalSessions.definition, Keys.connectionsPerAddress.definition, Keys.challengesPerAddress.definition,
    Keys.registrationsPerAddress.definition, Keys.upgradesPerAddress.definition, Keys.upgradesPerKey.definition,
    Keys.issuer.definition, Keys.audience.definition, Keys.identityKeyLife.definition,
    Keys.identityKeyOverlap.definition, Keys.strippedHeaders.definition,
    Keys.adminListen.definition, Keys.adminToken.definition, Keys.metricsListen.definition,
    Keys.logFormat.definition, Keys.logLevel.definition,
    Keys.drainTimeout.definition, Keys.unreadyDelay.definition, Keys.linger.definition,
  ]

  private static let byPattern = Dictionary(keys.map { ($0.pattern, $0) }, uniquingKeysWith: { first, _ in first })

  /// What may stand at a path.
  enum Shape {
    case value(KeyDefinition)
    case list
    case section
    case later
    case unknown
  }

  static func shape(of path: SettingPath) -> Shape {
    let pattern = path.pattern
    if let key = byPattern[pattern], key.isAvailable { return .value(key) }
    if isLater(path) { return .later }
    if pattern.isEmpty || keys.contains(where: { $0.pattern.hasPrefix(pattern + ".") }) { return .section }
    return keys.contains { $0.pattern.hasPrefix(pattern + "[]") } ? .list : .unknown
  }

  /// Whether the elements of the list at `path` are sections, not values.
  static func hasSections(in path: SettingPath) -> Bool { keys.contains { $0.pattern.hasPrefix(path.pattern + "[].") } }

  /// Whether `path` is, or stands below, what a later version brings.
  private static func isLater(_ path: SettingPath) -> Bool {
    var path = path
    while !path.steps.isEmpty {
      if byPattern[path.pattern]?.isAvailable == false { return true }
      path = path.parent
    }
    return false
  }

  /// The key that was probably meant by one that does not exist: a similar one of its section, one of the same name
  /// elsewhere, or a similar path.
  static func suggestion(for path: SettingPath) -> String? {
    let section = path.parent
    let prefix = section.pattern.isEmpty ? "" : section.pattern + "."
    let siblings = Set(
      keys.filter(\.isAvailable).map(\.pattern).filter { $0.hasPrefix(prefix) }
        .compactMap { $0.dropFirst(prefix.count).split(whereSeparator: { ".[".contains($0) }).first.map(String.init) })
    if let sibling = Suggestions.nearest(to: path.last, in: siblings.sorted()) { return section[sibling].text }
    let available = keys.filter(\.isAvailable).map { SettingPath(pattern: $0.pattern, indices: path.indices) }
    if let same = available.first(where: { $0.last == path.last }) { return same.text }
    return Suggestions.nearest(to: path.text, in: available.map(\.text))
  }
}
