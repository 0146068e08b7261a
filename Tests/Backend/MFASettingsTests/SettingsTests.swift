import ConfigurationEngine
import Foundation
import mfa_backend
import TestSupport
import Testing

@Suite("Settings of the backend")
struct SettingsTests {
  private func read(
    _ yaml: String, environment: [String: String] = [:], flags: [FlagSetting?] = []
  ) throws -> Result<BackendSettings, ConfigurationErrors> {
    let file = NSTemporaryDirectory() + "mfa-\(UUID().uuidString).yaml"
    try yaml.write(toFile: file, atomically: true, encoding: .utf8)
    defer { try? FileManager.default.removeItem(atPath: file) }
    let reader = SettingsReader(file: file, environment: environment, flags: flags.compactMap(\.self))
    return Result { () throws(ConfigurationErrors) in try reader.read() }.mapError { faults in
      ConfigurationErrors(
        faults: faults.faults.map { fault in
          guard case .file(_, let line, let column) = fault.origin else { return fault }
          return ConfigurationError(
            .file("mfa.yaml", line: line, column: column), fault.key, fault.reason, suggestion: fault.suggestion)
        })
    }
  }

  private static let least = """
    database: ephemeral
    gate: { jwks: keys.json, issuer: "https://gate", audience: mfa }

    """

  private func faults(_ yaml: String, environment: [String: String] = [:], flags: [FlagSetting?] = []) throws
    -> [String]
  {
    switch try read(yaml, environment: environment, flags: flags) {
    case .success: []
    case .failure(let faults): faults.faults.map(\.description)
    }
  }

  @Test("a file with only the required keys gives every default")
  func defaults() throws {
    let settings = try read(Self.least).get()
    #expect(settings.listen == .tcp(host: "127.0.0.1", port: 8080))
    #expect(settings.database == .ephemeral && settings.texting == .off && settings.mail == nil)
    #expect(settings.policy.mostDevices == 10 && settings.policy.gracePeriod == .seconds(7 * 86400))
    #expect(settings.domain == "localhost" && settings.issuer == "Sallyport")
    #expect(settings.policy.recoveryWait == .seconds(86400))
    #expect(settings.policy.allowsBiometricGate && settings.policy.secondFactorFor == "nobody")
    #expect(settings.limits.messagesPerHour == 3000 && settings.limits.messagesPerHourOfAddress == 30)
    #expect(settings.limits.accountsOfKey == 10 && !settings.policy.vouchesForDeviceKeys)
    #expect(settings.limits.messagesPerHourOfKey == 30 && settings.limits.codeRequestsOfAddress?.count == 100)
    #expect(settings.limits.codeRequestsOfAddress?.period == .seconds(50))
    #expect(settings.limits.codeRequestsOfKey.count == 20 && settings.limits.codeRequestsOfKey.period == .seconds(40))
    #expect(settings.limits.requestsOfKey.count == 120 && settings.limits.requestsOfKey.period == .seconds(6))
    #expect(settings.metrics == nil && settings.logLevel == "info" && !settings.logsStatements)
    #expect(settings.gate.keys.hasSuffix("/keys.json") && settings.gate.keys.hasPrefix("/"))
  }

  @Test(
    "the issuer name for authenticator apps is one line without a colon",
    arguments: [("Sallyport", true), ("Ada & Söhne", true), ("a:b", false), ("", false)])
  func issuer(_ name: String, _ isGood: Bool) throws {
    let yaml = Self.least + "issuer: \"\(name)\"\n"
    if isGood {
      #expect(try read(yaml).get().issuer == name)
    } else {
      #expect(try faults(yaml).count == 1)
    }
  }

  @Test("flags override variables, and variables override the file")
  func layers() throws {
    let yaml = Self.least + "listen: 127.0.0.1:1\ndomain: file\n"
    #expect(try read(yaml).get().listen == .tcp(host: "127.0.0.1", port: 1))
    let environment = ["MFA_BACKEND_LISTEN": "127.0.0.1:2", "MFA_BACKEND_POLICY__MOST_DEVICES": "3", "OTHER": "x"]
    let settings = try read(yaml, environment: environment).get()
    #expect(settings.listen == .tcp(host: "127.0.0.1", port: 2))
    #expect(settings.domain == "file" && settings.policy.mostDevices == 3)
    let flag = FlagSetting("--listen", "listen", "unix:/run/mfa.sock")
    #expect(try read(yaml, environment: environment, flags: [flag]).get().listen == .unix(path: "/run/mfa.sock"))
  }

  @Test("the variables of a container network for a service named mfa-backend are ignored")
  func containerNetwork() throws {
    let environment = [
      "MFA_BACKEND_SERVICE_HOST": "10.0.0.1", "MFA_BACKEND_SERVICE_PORT": "80", "MFA_BACKEND_PORT": "tcp://10.0.0.1:80",
      "MFA_BACKEND_PORT_80_TCP_ADDR": "10.0.0.1",
    ]
    #expect(try faults(Self.least, environment: environment).isEmpty)
  }

  @Test(
    "an unknown variable is refused with a suggestion",
    arguments: [
      ("MFA_BACKEND_LISTNE", "listne: unknown key (did you mean MFA_BACKEND_LISTEN)"),
      (
        "MFA_BACKEND_POLICY__MOST_DEVICE",
        "policy.most_device: unknown key (did you mean MFA_BACKEND_POLICY__MOST_DEVICES)"
      ),
      ("MFA_BACKEND_ZZZZZZZZ", "zzzzzzzz: unknown key"),
    ])
  func unknownVariable(_ name: String, _ reason: String) throws {
    #expect(try faults(Self.least, environment: [name: "x"]) == ["\(name): \(reason)"])
    #expect(try faults(Self.least, environment: [name: ""]).isEmpty)
  }

  @Test(
    "a listen address must be on loopback, and a name that resembles loopback is refused",
    arguments: [
      ("127.0.0.1:80", true), ("127.9.9.9:0", true), ("localhost:80", true), ("[::1]:80", true), ("unix:/run/a", true),
      ("127.0.0.1.example.org:80", false), ("127.example.org:80", false), ("128.0.0.1:80", false), ("[::]:80", false),
    ])
  func loopback(_ text: String, _ isPlace: Bool) {
    let place = ListenPlace(text)
    #expect((place != nil) == isPlace)
    if let place { #expect("\(place)" == text) }
  }

  @Test(
    "two listeners cannot share a place",
    arguments: [
      ("listen: unix:/run/a\nadmin: { listen: unix:/run/a }", "admin.listen: unix:/run/a is used by listen"),
      ("admin: { listen: unix:/run/a }\nmetrics: { listen: unix:/run/a }", "unix:/run/a is used by admin.listen"),
      ("metrics: { listen: 127.0.0.1:8080 }", "metrics.listen: 127.0.0.1:8080 is used by listen"),
      (
        "listen: localhost:8080\nmetrics: { listen: 127.0.0.1:8080 }",
        "metrics.listen: 127.0.0.1:8080 is used by listen"
      ), ("listen: localhost:8080\nmetrics: { listen: \"[::1]:8080\" }", "[::1]:8080 is used by listen"),
      ("listen: 127.0.0.1:8080\nmetrics: { listen: \"[::1]:8080\" }", nil),
      ("listen: 127.0.0.1:8080\nmetrics: { listen: 127.0.0.2:8080 }", nil),
      ("listen: localhost:8080\nmetrics: { listen: 127.0.0.1:8081 }", nil),
      ("listen: 127.0.0.1:0\nmetrics: { listen: 127.0.0.1:0 }", nil),
      ("listen: unix:/run/a\nadmin: { listen: unix:/run/b }\nmetrics: { listen: unix:/run/c }", nil),
    ] as [(String, String?)])
  func sharedPlace(_ lines: String, _ fault: String?) throws {
    let faults = try faults(Self.least + lines + "\n")
    #expect(faults.count == (fault == nil ? 0 : 1), "\(faults)")
    if let fault { #expect(faults.first?.contains(fault) == true, "\(faults)") }
  }

  @Test(
    "the console cannot share a place with a listener, also if its address is written as IPv6",
    arguments: [
      ("127.0.0.1", true), ("[::ffff:127.0.0.1]", true), ("[::ffff:7f00:1]", true), ("0.0.0.0", true),
      ("[::ffff:0.0.0.0]", true), ("[::]", true), ("[::1]", false), ("[::ffff:127.0.0.2]", false), ("127.0.0.2", false),
    ])
  func consolePlace(_ host: String, _ isTaken: Bool) throws {
    let console = """
      listen: "\(host):8080", url: "https://console.example.com", cert_file: cert.pem, key_file: key.pem, \
      client_ca_file: ca.pem, people: [{ subject: "CN=ada", role: admin }]
      """
    let faults = try faults(Self.least + "admin: { listen: unix:/run/a, console: { \(console) } }\n")
    #expect(faults.count == (isTaken ? 1 : 0), "\(faults)")
    if isTaken { #expect(faults.first?.contains("\(host):8080 is used by listen") == true, "\(faults)") }
  }

  @Test("SMS by a template of a request excludes Twilio's account and the sink, and its values are read")
  func textRequest() throws {
    let http = #"http: { url: "https://sms.example.com/{{to}}?q={{text}}", headers: ["X-Key: {{token}}"], "#
    let settings = try read(
      Self.least + "sms: { \(http)token_file: t, status: 200-204, method: GET }, from: \"+1\" }\n"
    ).get()
    guard case .template(let request) = settings.texting else {
      Issue.record("\(settings.texting)")
      return
    }
    #expect(request.origin == "https://sms.example.com/" && request.headers == ["X-Key: {{token}}"])
    #expect(request.status == 200...204 && request.method == "GET" && request.sender == "+1")
    #expect(
      try faults(Self.least + "sms: { \(http)status: 302, method: PUT }, account: AC1, sink: log }\n") == [
        "mfa.yaml:3:105: sms.http.status: must be a status code from 200 to 299, or a range such as 200-204",
        "mfa.yaml:3:118: sms.http.method: \"PUT\" is not one of POST, GET",
        "mfa.yaml:3:134: sms.account: cannot be set together with sms.http, which is for another API than Twilio's",
        "mfa.yaml:3:145: sms.sink: cannot be set together with sms.http",
      ])
    #expect(
      try faults(Self.least + "sms: { http: { url: \"http://sms.example.com/\", headers: [\"Key\"] } }\n") == [
        "mfa.yaml:3:21: sms.http.url: must be https, or http on loopback: codes and the token are sent there",
        "mfa.yaml:3:58: sms.http.headers[0]: must be a line Name: value of printable ASCII",
      ])
    #expect(try faults(Self.least + "sms: { http: { escape: json } }\n") == ["mfa.yaml:3:8: sms.http.url: missing"])
  }

  @Test("all faults are reported together, each with its place")
  func faults() throws {
    let yaml = """
      listen: 0.0.0.0:8080
      databse: ephemeral
      gate:
        jwks: keys.json
        isuer: x
      sms: { sink: pager, account: AC1 }
      policy: { most_devices: many, grace_period: soon }
      domain: a
      domain: b
      log: debug
      email:

      """
    #expect(
      try faults(yaml, environment: ["MFA_BACKEND_GATE__TYPO": "1"]) == [
        "mfa.yaml:1:1: database: missing",
        "mfa.yaml:1:9: listen: must be ADDRESS:PORT on loopback or unix:/path, because the backend has no TLS",
        "mfa.yaml:2:1: databse: unknown key (did you mean database)",
        "mfa.yaml:3:1: gate.issuer: missing",
        "mfa.yaml:3:1: gate.audience: missing",
        "mfa.yaml:5:3: gate.isuer: unknown key (did you mean gate.issuer)",
        "mfa.yaml:6:1: sms.token_file: missing",
        "mfa.yaml:6:1: sms.from: missing",
        "mfa.yaml:6:14: sms.sink: \"pager\" is not one of log",
        "mfa.yaml:7:25: policy.most_devices: \"many\" is not a whole number",
        "mfa.yaml:7:45: policy.grace_period: \"soon\" is not a duration: write a whole number and ms, s, m, h or d",
        "mfa.yaml:9:1: domain: set twice, first in line 8",
        "mfa.yaml:10:6: log: expected a section with keys",
        "MFA_BACKEND_GATE__TYPO: gate.typo: unknown key",
      ])
  }

  @Test(
    "a text that is not a configuration is one fault",
    arguments: [
      ("- a", "mfa.yaml:1:1: the file contains no keys; expected a form such as listen: 127.0.0.1:8080"),
      ("listen: [", "mfa.yaml:2:1: not YAML"), ("gate: 1: 2", "mfa.yaml:1:"),
    ])
  func noConfiguration(_ yaml: String, _ start: String) throws {
    let faults = try faults(yaml + "\n")
    #expect(faults.first?.hasPrefix(start) == true)
    // Keys of a text that is not YAML are unknown, not missing.
    #expect(faults.count == 1 || start.hasSuffix("8080"), "\(faults)")
  }

  @Test("an unreadable file is reported first, and its keys are not missing")
  func unreadableFile() {
    let reader = SettingsReader(file: "/nowhere/mfa.yaml", environment: ["MFA_BACKEND_A__B": "1"], flags: [])
    let file = "/nowhere/mfa.yaml"
    let first = #expect(throws: ConfigurationErrors.self) { try reader.read() }?.faults.first
    #expect(first?.origin == .file(file, line: 1, column: 1))
    #expect(first?.description == "\(file):1:1: cannot read the file: No such file or directory (ENOENT)")
  }

  @Test("a database requires keys, and its URL must have a supported scheme")
  func database() throws {
    let gate = "gate: { jwks: \"https://g/keys\", issuer: i, audience: a }\n"
    #expect(try faults("database: sqlite:///x.db\n" + gate) == ["mfa.yaml:1:1: keys_file: missing"])
    #expect(
      try faults("database: mysql://x\n" + gate) == [
        "mfa.yaml:1:11: database: must be sqlite:///path, postgres://… or ephemeral"
      ])
    let settings = try read("database: postgres://db/mfa\nkeys_file: /k.json\n" + gate).get()
    #expect(settings.database == .kept(url: "postgres://db/mfa", keysFile: "/k.json"))
    #expect(settings.gate.keys == "https://g/keys")
  }

  @Test(
    "a place that cannot exist is refused",
    arguments: [
      ("database: 'sqlite:///'", "must be absolute and name a file"),
      ("database: 'sqlite://x.db'", "must be absolute and name a file"),
      ("database: 'sqlite:///x.db?mode=ro'", "cannot have parameters"),
      ("database: 'postgres://'", "has no database name"), ("database: 'postgres://u@h'", "has no database name"),
      ("database: 'host=h dbname=d'", "must be sqlite:///path"),
      ("listen: '127.0.0.1:+80'", "must be ADDRESS:PORT"), ("listen: 'unix:/'", "must be absolute"),
      ("listen: 'unix:/\(String(repeating: "x", count: 107))'", "at most 107 bytes"),
      ("admin: { listen: 'unix://run/a' }", "contains a host"), ("admin: { listen: 'unix:a' }", "must be absolute"),
      ("email: { smtp: 'mail:+25', from: a@b.example }", "must be HOST:PORT"),
      ("email: { smtp: 'a..b:25', from: a@b.example }", "must be HOST:PORT"),
      ("sms: { account: a, token_file: /t, from: '+1', url: 'https://' }", "must be https"),
      ("sms: { account: a, token_file: /t, from: '+1', url: 'https://h:0' }", "must be https"),
      ("oidc: { issuer: 'https://:443', audiences: a }", "must be an https URL"),
    ])
  func impossible(_ line: String, _ reason: String) throws {
    let key = line.prefix { $0 != ":" }
    let rest = Self.least.split(separator: "\n").filter { !$0.hasPrefix(key) }.joined(separator: "\n")
    let found = try faults("\(line)\n\(rest)\n")
    #expect(found.contains { $0.hasPrefix("mfa.yaml:1:") && $0.contains(reason) }, "\(found)")
  }

  @Test("a password file is for a PostgreSQL database that its own layer or a lower one names, and for no other")
  func databasePassword() throws {
    let rest = "keys_file: /k.json\ngate: { jwks: \"https://g/keys\", issuer: i, audience: a }\nsms: { sink: log }\n"
    let both = "database: postgres://db/mfa\ndatabase_password_file: /p\n" + rest
    let known = BackendSettings.Database.kept(url: "postgres://db/mfa", keysFile: "/k.json", passwordFile: "/p")
    #expect(try read(both).get().database == known)
    #expect(
      try faults("database: sqlite:///x.db\ndatabase_password_file: /p\n" + rest) == [
        "mfa.yaml:2:25: database_password_file: has no effect for a SQLite database, which has no password"
      ])
    // The password of one server does not go to another.
    let other = [FlagSetting("--database", "database", "postgres://other/mfa")]
    #expect(
      try read(both, flags: other).get().database == .kept(url: "postgres://other/mfa", keysFile: "/k.json"))
    let variable = ["MFA_BACKEND_DATABASE": "postgres://other/mfa"]
    #expect(
      try read(both, environment: variable).get().database
        == .kept(url: "postgres://other/mfa", keysFile: "/k.json"))
    // A flag or a variable next to the file's database is meant for it.
    let file = ["MFA_BACKEND_DATABASE_PASSWORD_FILE": "/p"]
    #expect(try read("database: postgres://db/mfa\n" + rest, environment: file).get().database == known)
  }

  @Test("e-mail and SMS each require all of their settings")
  func delivery() throws {
    let yaml = Self.least + "email: { smtp: mail, from: a@b.c, user: u }\nsms: { from: \"+1234567890\" }\n"
    #expect(
      try Set(faults(yaml)) == [
        "mfa.yaml:3:41: email.user: must be set together with email.password_file or email.token_file",
        "mfa.yaml:3:16: email.smtp: must be HOST:PORT, or [ADDRESS]:PORT for IPv6",
        "mfa.yaml:4:1: sms.account: missing", "mfa.yaml:4:1: sms.token_file: missing",
      ])
  }

  @Test(
    "a setting that would send codes to an unintended place is a fault",
    arguments: [
      (
        "sms: { sink: log }\nemail: { smtp: \"mail:25\", from: a@b.c }",
        "mfa.yaml:3:14: sms.sink: cannot be set together with a mail server: it writes e-mail to the log too"
      ),
      ("email: { smtp: \"mail:25\", from: noreply }", "mfa.yaml:3:33: email.from: is name@domain"),
      ("email: { ca_file: /ca.pem }", "mfa.yaml:3:1: email.smtp: missing"),
      ("email: { tls: implicit }", "mfa.yaml:3:1: email.smtp: missing"),
      (mailed("tls: none"), "mfa.yaml:3:45: email.tls: \"none\" is not one of starttls, implicit"),
      (mailed("ehlo: \"a b\""), "mfa.yaml:3:46: email.ehlo: must be a host name"),
      (mailed("ehlo: \"a\\r\\nMAIL\""), "mfa.yaml:3:46: email.ehlo: must be a host name"),
      (mailed("token_file: /t"), "mfa.yaml:3:1: email.user: must be set together"),
      (
        mailed("user: u, password_file: /p, token_file: /t"),
        "mfa.yaml:3:80: email.token_file: cannot be set together with email.password_file"
      ), (mailed("user: u, token_file: /t"), nil), (mailed("ehlo: \"[192.0.2.1]\""), nil),
      (texted("http://sms.example.com"), "mfa.yaml:3:54: sms.url: must be https, or http on loopback"),
      (texted("api.twilio.com"), "mfa.yaml:3:54: sms.url: must be https"),
      (texted("ftp://127.0.0.1"), "mfa.yaml:3:54: sms.url: must be https"),
      (texted("https://u:secret@sms.example.com/x"), "mfa.yaml:3:54: sms.url: must not contain a user or a password"),
      (texted("HTTPS://u@sms.example.com"), "mfa.yaml:3:54: sms.url: must not contain a user or a password"),
      (texted("https://sms.example.com/x?to=a@b"), nil),
      (texted("https://sms.example.com/x"), nil), (texted("http://127.0.0.1:8025"), nil),
    ] as [(String, String?)])
  func misdirected(_ section: String, _ fault: String?) throws {
    let yaml = Self.least + section + "\n"
    if let fault {
      let first = try #require(try faults(yaml).first)
      #expect(first.hasPrefix(fault), "\(first)")
    } else {
      #expect(throws: Never.self) { try read(yaml).get() }
    }
  }

  private static func mailed(_ more: String) -> String { "email: { smtp: \"mail:25\", from: a@b.c, \(more) }" }

  @Test(
    "TLS begins with the connection on port 465, or where that is set",
    arguments: [
      ("mail:465", "", true), ("mail:587", "", false), ("mail:2465", ", tls: implicit", true),
      ("mail:465", ", tls: starttls", false),
    ])
  func implicitTLS(_ server: String, _ more: String, _ isImplicit: Bool) throws {
    let mail = try read(Self.least + "email: { smtp: \"\(server)\", from: a@b.c\(more) }\n").get().mail
    #expect(mail?.beginsWithTLS == isImplicit && mail?.greeting == nil)
  }

  private static func texted(_ url: String) -> String {
    "sms: { account: AC, token_file: /t, from: \"+1\", url: \"\(url)\" }"
  }

  @Test(
    "the URL of the SMS provider may end with a slash",
    arguments: [
      ("https://sms.example.com/", "https://sms.example.com"),
      ("https://sms.example.com/x/", "https://sms.example.com/x"),
      ("https://sms.example.com/x", "https://sms.example.com/x"),
    ])
  func textServer(_ text: String, _ base: String) throws {
    let settings = try read(Self.least + Self.texted(text) + "\n").get()
    guard case .provider(let url, _, _, _) = settings.texting else {
      Issue.record("\(settings.texting)")
      return
    }
    #expect(url == base)
  }

  @Test(
    "a mail server is a name or an address, and an IPv6 address is in brackets",
    arguments: [
      ("mail.example.com:587", "mail.example.com"), ("192.0.2.1:25", "192.0.2.1"), ("[2001:db8::1]:25", "2001:db8::1"),
      ("2001:db8::1:25", nil), ("[192.0.2.1]:25", nil), ("[::1]", nil), (":25", nil), ("mail:0", nil),
      ("mail:65536", nil),
      ("user@mail:25", nil), ("[]:25", nil),
    ] as [(String, String?)])
  func mailServer(_ text: String, _ host: String?) throws {
    let yaml = Self.least + "email: { smtp: \"\(text)\", from: a@b.c }\n"
    #expect((try? read(yaml).get())?.mail?.host == host)
  }

  @Test(
    "plain http is accepted for the gate's keys only on loopback",
    arguments: [
      ("https://gate.example.com/jwks.json", true), ("http://127.0.0.1:6200/jwks.json", true),
      ("http://localhost/jwks.json", true), ("http://[::1]:6200/jwks.json", true), ("/etc/gate.jwks", true),
      ("http://gate.example.com/jwks.json", false), ("HTTP://gate.example.com/jwks.json", false),
      ("http://127.0.0.1@gate.example.com/", false), ("http://127.0.0.1.example.com/", false),
      ("http://[2001:db8::1]/", false), ("http://localhost.example.com/", false), ("http:///jwks.json", false),
      ("http://192.0.2.1/", false),
    ])
  func plainKeys(_ place: String, _ isTaken: Bool) throws {
    let yaml = "database: ephemeral\ngate: { jwks: \"\(place)\", issuer: i, audience: a }\n"
    let fault =
      "mfa.yaml:2:15: gate.jwks: must be a file, an https URL, or an http URL on loopback: changed keys would let"
      + " an attacker forge identities"
    #expect(try faults(yaml) == (isTaken ? [] : [fault]))
  }

  @Test(
    "roots for the gate's keys are a warning if the keys do not come by https",
    arguments: [
      ("https://gate.example.com/jwks.json", false), ("http://127.0.0.1:6200/jwks.json", true),
      ("/etc/gate.jwks", true),
    ])
  func uselessRoots(_ place: String, _ isWarned: Bool) {
    let flags = [
      FlagSetting("--ephemeral", "database", "ephemeral"), FlagSetting("--gate-jwks", "gate.jwks", place),
      FlagSetting("--gate-ca", "gate.ca_file", "/ca.pem"), FlagSetting("--gate-issuer", "gate.issuer", "i"),
      FlagSetting("--audience", "gate.audience", "a"),
    ]
    let diagnostics = SettingsReader(file: nil, environment: [:], flags: flags.compactMap(\.self)).examine()
    #expect(diagnostics.faults.isEmpty, "\(diagnostics.faults)")
    #expect(diagnostics.warnings.contains { $0.key == "gate.ca_file" } == isWarned, "\(diagnostics.warnings)")
  }

  @Test(
    "a setting without effect is a warning, and the default in the example file is none",
    arguments: [
      ("push: { fcm: { endpoint: \"https://push.example.com\" } }", "push.fcm.endpoint"),
      ("push: { fcm: { endpoint: \"https://fcm.googleapis.com\" } }", nil),
      ("sms: { url: \"https://sms.example.com\" }", "sms.url"),
      ("webhooks: { url: \"https://hooks.example.com/\", secret_file: s, events: [] }", "webhooks.events"),
    ] as [(String, String?)])
  func settingWithoutEffect(_ text: String, _ warned: String?) throws {
    let file = NSTemporaryDirectory() + "mfa-\(UUID().uuidString).yaml"
    try (Self.least + text + "\n").write(toFile: file, atomically: true, encoding: .utf8)
    defer { try? FileManager.default.removeItem(atPath: file) }
    let diagnostics = SettingsReader(file: file, environment: [:], flags: []).examine()
    #expect(diagnostics.faults.isEmpty, "\(diagnostics.faults)")
    let warnings = diagnostics.warnings.map(\.key).filter { $0 != "database" && $0 != "admin.listen" }
    #expect(warnings == [warned].compactMap(\.self))
  }

  @Test("the place of the gate's keys has neither user nor password, which status would show")
  func keysWithPassword() throws {
    for place in ["https://u:secret@gate.example.com/jwks.json", "https://u@gate.example.com"] {
      let yaml = "database: ephemeral\ngate: { jwks: \"\(place)\", issuer: i, audience: a }\n"
      let fault =
        "mfa.yaml:2:15: gate.jwks: must not contain a user or a password: the keys are public, and status shows the URL"
      #expect(try faults(yaml) == [fault])
    }
  }

  @Test("off and 0 remove the limit for one address", arguments: ["off", "0"])
  func withoutLimit(_ word: String) throws {
    let yaml = Self.least + "limits: { per_ip: { messages_per_hour: \(word), code_requests: \(word) } }\n"
    let limits = try read(yaml).get().limits
    #expect(limits.messagesPerHourOfAddress == nil && limits.codeRequestsOfAddress == nil)
    #expect(limits.messagesPerHourOfKey == 30 && limits.messagesPerHour == 3000)
    let environment = ["MFA_BACKEND_LIMITS__PER_IP__MESSAGES_PER_HOUR": "7"]
    let flag = FlagSetting("--ip-code-requests", "limits.per_ip.code_requests", "5/1h")
    let above = try read(yaml, environment: environment, flags: [flag]).get().limits
    #expect(above.messagesPerHourOfAddress == 7)
    #expect(above.codeRequestsOfAddress?.count == 5 && above.codeRequestsOfAddress?.period == .seconds(3600))
  }

  @Test("a limit has bounds, and only a limit for one address can be off")
  func limitBounds() throws {
    let yaml =
      Self.least + """
        limits:
          messages_per_hour: off
          global: 3
          per_ip: { messages_per_hour: 1000001, code_requests: 0/1s }
          per_key: { messages_per_hour: 0, code_requests: 5/2d, requests: 120 }

        """
    #expect(
      try faults(yaml) == [
        "mfa.yaml:4:22: limits.messages_per_hour: \"off\" is not a whole number",
        "mfa.yaml:5:3: limits.global: unknown key",
        "mfa.yaml:6:32: limits.per_ip.messages_per_hour: 1000001 is out of range: 1 to 1000000",
        "mfa.yaml:6:56: limits.per_ip.code_requests: 0 is out of range: 1 to 1000000",
        "mfa.yaml:7:33: limits.per_key.messages_per_hour: 0 is out of range: 1 to 1000000",
        "mfa.yaml:7:51: limits.per_key.code_requests: 2d is out of range: 1s to 1d",
        "mfa.yaml:7:67: limits.per_key.requests: \"120\" is not a rate: write a number, a slash and a duration",
      ])
  }

  @Test(
    "A-229 a recovery waits at least one hour, or recovery is off",
    arguments: [("1h", 3600), ("30d", 2_592_000), ("off", nil)] as [(String, Int?)])
  func recoveryWait(_ text: String, _ seconds: Int?) throws {
    let settings = try read(Self.least + "policy: { recovery_wait: \(text) }\n").get()
    #expect(settings.policy.recoveryWait == seconds.map { .seconds($0) })
  }

  @Test("A-229 a recovery without a wait is refused with the reason", arguments: ["0", "0s", "59m", "31d", "on"])
  func noRecoveryWait(_ text: String) throws {
    #expect(
      try faults(Self.least + "policy: { recovery_wait: \(text) }\n") == [
        "mfa.yaml:3:26: policy.recovery_wait: must be a time from 1h to 30d, or off: the user needs time to stop a"
          + " thief of the codes"
      ])
  }

  @Test("every key has its own variable")
  func variables() {
    let table = SettingsTable.backend
    let variables = Set(table.keys.map(table.variable(of:)))
    #expect(variables.count == table.keys.count && variables.contains("MFA_BACKEND_GATE__CA_FILE"))
  }
}

@Suite("Documentation of the settings")
struct WrittenSettingsTests {
  @Test("the example has every key, and its values are valid")
  func example() throws {
    let file = ProjectFile.path("config/mfa-backend.yaml")
    _ = try SettingsReader(file: file, environment: [:], flags: []).read()
    // With the commented lines enabled, no key is unknown.
    let text = try String(contentsOfFile: file, encoding: .utf8)
    let names = SettingsTable.backend.keys.flatMap { $0.pattern.split(separator: ".").map(String.init) }
    for name in names { #expect(text.contains(name.replacing("[]", with: "") + ":"), "\(name)") }
  }

  @Test("the guide has the table of all keys")
  func table() throws {
    let guide = try ProjectFile.text("Sources/Backend/MFAService/MFAService.docc/Guide.md")
    #expect(guide.contains(SettingsDocuments.backend.reference))
  }
}
