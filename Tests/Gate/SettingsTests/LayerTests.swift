@testable import ConfigurationEngine
import Foundation
import Testing

@testable import Settings

@Suite("Flags override the environment, the environment the file, and the file the defaults")
struct LayerTests {
  @Test("Each layer overrides the one below it, and the origin of a value names the layer")
  func precedence() throws {
    let workspace = try Workspace()
    let yaml = "listen: { port: 1 }"
    var environment = Workspace.tls
    func port(_ settings: GateSettings) -> EffectiveValue? { settings.effective.first { $0.key == "listen.port" } }

    var settings = try workspace.load()
    #expect(settings.listen.port == 6200)
    #expect(port(settings) == EffectiveValue(key: "listen.port", text: "6200", origin: .standard))

    settings = try workspace.load(yaml: yaml)
    #expect(settings.listen.port == 1)
    #expect(port(settings)?.origin == .file("gate.yaml", line: 1, column: 17))

    settings = try workspace.load(yaml: yaml, dotenv: "SALLYPORT_LISTEN__PORT=2")
    #expect(settings.listen.port == 2)
    #expect(port(settings)?.origin == .dotenv(line: 1, variable: "SALLYPORT_LISTEN__PORT"))

    environment["SALLYPORT_LISTEN__PORT"] = "3"
    settings = try workspace.load(yaml: yaml, environment: environment)
    #expect(settings.listen.port == 3)
    #expect(port(settings)?.origin == .environment("SALLYPORT_LISTEN__PORT"))

    let flags = [FlagSetting(flag: "--port", key: "listen.port", text: "4")]
    settings = try workspace.load(yaml: yaml, environment: environment, flags: flags)
    #expect(settings.listen.port == 4)
    #expect(port(settings)?.origin == .flag("--port"))
  }

  @Test("A list of 6,000 apps is read in time, because none looks at all others", .timeLimit(.minutes(5)))
  func longList() throws {
    // About as many as a file may have, by the number of its values.
    let apps = (0..<6000).map { "{ team_id: AAABBBCCC1, bundle_id: com.example.app\($0) }" }
    let settings = try Workspace().load(yaml: "app_attest: { apps: [\(apps.joined(separator: ", "))] }")
    #expect(settings.appAttest.apps.count == 6000)
  }

  @Test("A byte order mark at the start of the file is ignored and does not shift places")
  func byteOrderMark() throws {
    let workspace = try Workspace()
    #expect(try workspace.load(yaml: "\u{FEFF}listen: { port: 1 }").listen.port == 1)
    #expect(try workspace.load(yaml: "\u{FEFF}# a comment\nlisten: { port: 1 }").listen.port == 1)
    #expect(
      try workspace.faults(yaml: "\u{FEFF}listn: { port: 1 }")
        == ["gate.yaml:1:1: listn: unknown key (did you mean listen)"])
  }

  @Test(
    "Proxies may be trusted without PROXY headers: then they only ask on behalf of clients",
    arguments: ["off", "v2"]
  )
  func trustedProxies(_ headers: String) throws {
    let workspace = try Workspace()
    let listen = try workspace.load(
      yaml: "listen: { proxy_protocol: \(headers), trusted_proxies: [192.0.2.0/24] }"
    ).listen
    #expect(listen.trustedProxies == [.init(bytes: [192, 0, 2, 0], length: 24)])
    #expect((listen.proxies == nil) == (headers == "off"))
  }

  @Test(
    "An IPv4 range in IPv6 form equals the IPv4 range",
    arguments: [("::ffff:192.0.2.7", 32), ("::ffff:192.0.2.0/120", 24), ("::ffff:0:0/96", 0)])
  func mappedProxies(_ text: String, _ length: Int) throws {
    let listen = try Workspace().load(yaml: "listen: { trusted_proxies: ['\(text)'] }").listen
    #expect(!listen.trustsForwardedFor && listen.maxHead == 16384)
    #expect(listen.trustedProxies.map(\.bytes.count) == [4] && listen.trustedProxies.map(\.length) == [length])
    #expect(
      try Workspace().load(yaml: "listen: { trusted_proxies: ['::/0'] }").listen.trustedProxies[0].bytes.count == 16)
  }

  @Test("X-Forwarded-For of the proxies can be trusted; a limit of connections per address then gives a warning")
  func forwardedFor() throws {
    let yaml = "listen: { trusted_proxies: [10.0.0.0/8], forwarded_for: trust, max_head: 64KiB }"
    let settings = try Workspace().load(yaml: yaml)
    #expect(settings.listen.trustsForwardedFor && settings.listen.maxHead == 65536)
    func warnings(_ yaml: String) throws -> Int {
      try Workspace().load(yaml: yaml).warnings.count { "\($0)".contains("limits.per_ip.connections") }
    }
    #expect(try warnings(yaml) == 0)
    #expect(try warnings(yaml + "\nlimits: { per_ip: { connections: 9 } }") == 1)
    #expect(try warnings("limits: { per_ip: { connections: 9 } }") == 0)
  }

  @Test("A variable changes an element of a list, and appends to its end")
  func listsFromVariables() throws {
    let workspace = try Workspace()
    let variables = [
      "SALLYPORT_ROUTES__0__UPSTREAM": "ws://other:1", "SALLYPORT_ROUTES__1__PATH": "/b",
      "SALLYPORT_ROUTES__1__UPSTREAM": "unix:/run/b.sock",
    ]
    let settings = try workspace.load(
      yaml: "routes: [{ path: /a, upstream: 'ws://one:1' }]",
      environment: variables.merging(Workspace.tls) { given, _ in given })
    #expect(
      settings.routes == [
        .init(path: "/a", upstreams: [.webSocket(host: "other", port: 1)], forward: .upgrades),
        .init(path: "/b", upstreams: [.unix(path: "/run/b.sock")], forward: .upgrades),
      ])
  }

  @Test("A gate can be configured with variables only")
  func onlyVariables() throws {
    let workspace = try Workspace()
    let settings = try workspace.load(
      environment: [
        "SALLYPORT_APP_ATTEST__APPS__0__TEAM_ID": "AAABBBCCC1", "SALLYPORT_APP_ATTEST__APPS__0__BUNDLE_ID": "a.b",
        "SALLYPORT_APP_ATTEST__APPS__0__ENVIRONMENTS__0": "development",
      ].merging(Workspace.tls) { given, _ in given })
    let app = try #require(settings.appAttest.apps.first)
    #expect(app.teamID == "AAABBBCCC1" && app.bundleID == "a.b" && app.environments == [.development])
  }

  @Test(
    "Variables without a setting are ignored", arguments: ["SALLYPORT_AUTHORITY", "SALLYPORT_PORT_6200_TCP", "HOME"])
  func foreignVariables(_ name: String) throws {
    let workspace = try Workspace()
    let settings = try workspace.load(environment: [name: "x"].merging(Workspace.tls) { given, _ in given })
    #expect(!settings.warnings.contains { $0.description.contains(name) })
  }

  @Test("A key with one underscore instead of two sets nothing and causes a warning")
  func similarName() throws {
    let workspace = try Workspace()
    let settings = try workspace.load(
      environment: ["SALLYPORT_LISTEN_PORT": "1"].merging(Workspace.tls) { given, _ in given })
    #expect(settings.listen.port == 6200)
    #expect(
      settings.warnings.map(\.description).contains(
        "SALLYPORT_LISTEN_PORT: SALLYPORT_LISTEN_PORT has no effect (did you mean SALLYPORT_LISTEN__PORT)"))
  }

  @Test("Relative paths start from the folder of their source")
  func relativePaths() throws {
    let workspace = try Workspace()
    try workspace.write(Workspace.certificate, to: "etc/tls/cert.pem")
    try workspace.write("tls: { cert_file: ./tls/cert.pem }", to: "etc/gate.yaml")
    let settings = try SettingsLoader(
      file: "etc/gate.yaml", environment: ["SALLYPORT_TLS__KEY_FILE": "./key.pem"], workingDirectory: workspace.folder
    ).load()
    #expect(settings.tls.files.first?.certificateFile == "\(workspace.folder)/etc/tls/cert.pem")
    #expect(settings.tls.files.first?.keyFile == "\(workspace.folder)/key.pem")
  }

  @Test("Files in the credentials folder are used only where no file is configured")
  func credentials() throws {
    let workspace = try Workspace()
    try workspace.write(Workspace.certificate, to: "credentials/tls.cert")
    try workspace.write(Workspace.key, to: "credentials/tls.key", permissions: 0o600)
    let folder = "\(workspace.folder)/credentials"
    var settings = try workspace.load(environment: ["CREDENTIALS_DIRECTORY": folder])
    #expect(settings.tls.files.first?.keyFile == "\(folder)/tls.key")
    #expect(
      settings.effective.first { $0.key == "tls.key_file" }?.origin == .credential("\(folder)/tls.key"))
    #expect(settings.appAttest.challengeKeysFile == nil)

    settings = try workspace.load(
      environment: ["CREDENTIALS_DIRECTORY": folder, "SALLYPORT_TLS__KEY_FILE": "key.pem"])
    #expect(settings.tls.files.first?.keyFile == "\(workspace.folder)/key.pem")
  }

  @Test("The gate creates a store's folder only if the store's path is the default")
  func stateFolderToMake() throws {
    let workspace = try Workspace()
    let environment = Workspace.tls.merging(["STATE_DIRECTORY": "/s"]) { $1 }
    let unnamed = try workspace.load(environment: environment)
    #expect(unnamed.store == .sqlite(path: "/s/state.db") && unnamed.stateFolder == "/s")
    // The path that check --effective prints.
    let same = try workspace.load(yaml: "store: { url: 'sqlite:///s/state.db' }", environment: environment)
    #expect(same.stateFolder == "/s")
    let named = try workspace.load(yaml: "store: { url: 'sqlite:///a/b.db' }", environment: environment)
    #expect(named.store == .sqlite(path: "/a/b.db") && named.stateFolder == nil)
  }

  @Test("A database's URL stays as configured, and no printed text shows its password")
  func databaseURL() throws {
    let workspace = try Workspace()
    try workspace.write("hunter2", to: "credentials/store.password", permissions: 0o600)
    let url = "postgresql://u:s3:cr@et@a:5432,b/x?sslmode=verify-full&sslpassword=s3cret"
    let settings = try workspace.load(
      yaml: "store: { url: '\(url)' }",
      environment: Workspace.tls.merging(
        ["CREDENTIALS_DIRECTORY": "\(workspace.folder)/credentials"]) { $1 })
    guard case .postgres(let stored, let passwordFile) = settings.store else {
      Issue.record("not a PostgreSQL store")
      return
    }
    #expect(stored.text == url)
    #expect(passwordFile == "\(workspace.folder)/credentials/store.password")
    #expect(settings.stateFolder == nil)
    #expect("\(settings)".contains("postgresql://u:…@a:5432,b/x?sslmode=verify-full&sslpassword=…"))
    for secret in ["s3", "hunter2"] { #expect(!"\(settings)".contains(secret)) }
  }

  @Test("A password file that every user can read causes a warning; other files do not")
  func publicSecrets() throws {
    let workspace = try Workspace()
    try workspace.write("hunter2", to: "password", permissions: 0o604)
    let settings = try workspace.load(
      yaml: "routes: []\nstore: { url: 'postgres://a@h/d', password_file: password }")
    #expect(
      settings.warnings.map { $0.description.replacingOccurrences(of: workspace.folder, with: "DIR") }.filter {
        $0.contains("can read")
      } == ["gate.yaml:2:50: store.password_file: every user of this machine can read DIR/password"])
  }

  @Test(
    "Keys that every user can read are an error; keys that the group can read cause a warning",
    arguments: [0o600, 0o400, 0o640, 0o440, 0o644, 0o604, 0o666])
  func publicKeys(_ permissions: Int) throws {
    let workspace = try Workspace()
    let yaml = "routes: []\napp_attest: { challenge_keys_file: challenge.keys }"
    try workspace.write(Workspace.key, to: "key.pem", permissions: permissions)
    try workspace.write("1 00", to: "challenge.keys", permissions: permissions)
    let places = [
      ("gate.yaml:2:36: app_attest.challenge_keys_file", "DIR/challenge.keys"),
      ("SALLYPORT_TLS__KEY_FILE: tls.key_file", "DIR/key.pem"),
    ]
    let isPublic = permissions & 0o004 != 0
    #expect(
      try workspace.faults(yaml: yaml)
        == (isPublic ? places.map { "\($0): every user of this machine can read \($1)" } : []))
    guard !isPublic else { return }
    let warnings = try workspace.load(yaml: yaml).warnings
      .map { $0.description.replacingOccurrences(of: workspace.folder, with: "DIR") }.filter { $0.contains("can read") }
    #expect(
      Set(warnings) == Set(permissions & 0o040 != 0 ? places.map { "\($0): the group of \($1) can read it" } : []))
  }

  @Test("A credential that the gate's group can read causes no warning")
  func groupCredential() throws {
    let workspace = try Workspace()
    try workspace.write(Workspace.key, to: "credentials/tls.key", permissions: 0o440)
    let environment = [
      "SALLYPORT_TLS__CERT_FILE": "cert.pem", "CREDENTIALS_DIRECTORY": "\(workspace.folder)/credentials",
    ]
    #expect(
      try !workspace.load(yaml: "routes: []", environment: environment).warnings.contains { "\($0)".contains("group") })
  }

  @Test(
    "The default store is in the state folder",
    arguments: [
      (["STATE_DIRECTORY": "/s:/t", "XDG_STATE_HOME": "/x"], false, "/s/state.db"),
      (["XDG_STATE_HOME": "/x"], true, "/var/lib/sallyport/state.db"),
      (["XDG_STATE_HOME": "/x", "HOME": "/h"], false, "/x/sallyport/state.db"),
      (["XDG_STATE_HOME": "relative", "HOME": "/h"], false, "/h/.local/state/sallyport/state.db"),
      ([:], false, "/var/lib/sallyport/state.db"),
      (["SALLYPORT_ROOT": "/r"], true, "/r/var/lib/sallyport/state.db"),
      (["SALLYPORT_ROOT": "/r", "HOME": "/h"], false, "/h/.local/state/sallyport/state.db"),
      (["SALLYPORT_ROOT": "/r"], false, "/r/var/lib/sallyport/state.db"),
    ])
  func stateFolder(_ environment: [String: String], _ isRoot: Bool, _ expected: String) throws {
    var entries = Entries()
    DefaultResolution.addStore(to: &entries, environment: environment, isRoot: isRoot)
    #expect(entries.values[.root["store"]["url"]]?.text == "sqlite://\(expected)")
  }
}
