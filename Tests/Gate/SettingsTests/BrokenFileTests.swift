import Testing

@testable import Settings

/// A configuration that must not start a gate, and all errors that the gate reports for it.
struct Broken: Sendable, CustomTestStringConvertible {
  let title: String
  let yaml: String
  let faults: [String]
  var testDescription: String { title }

  init(_ title: String, _ yaml: String, _ faults: String...) {
    self.title = title
    self.yaml = yaml
    self.faults = faults.map { "gate.yaml:\($0)" }
  }
}

@Suite("A broken file is refused with the place of each error")
struct BrokenFileTests {
  @Test("All errors are reported, with line and column", arguments: grammar + values + relations)
  func faults(_ broken: Broken) throws {
    let workspace = try Workspace()
    #expect(try workspace.faults(yaml: broken.yaml) == broken.faults)
  }

  @Test("Without a usable certificate the gate does not start", arguments: certificates)
  func certificateFaults(_ broken: Broken) throws {
    let workspace = try Workspace()
    #expect(try workspace.faults(yaml: broken.yaml, environment: [:]) == broken.faults)
  }

  /// Ten anchors, each with nine aliases of the one before.
  private static let bomb: String = {
    let names = Array("abcdefghij")
    let lines = zip(names.dropFirst(), names).map {
      "\($0): &\($0) [\(Array(repeating: "*\($1)", count: 9).joined(separator: ", "))]\n"
    }
    return "a: &a [x, x, x, x, x, x, x, x, x]\n" + lines.joined()
  }()

  static let grammar: [Broken] = [
    Broken("a misspelt section", "listten: { port: 1 }", "1:1: listten: unknown key (did you mean listen)"),
    Broken("a misspelt key", "listen:\n  prot: 6200", "2:3: listen.prot: unknown key (did you mean listen.port)"),
    Broken(
      "a key in the wrong section", "listen:\n  cert_file: x",
      "2:3: listen.cert_file: unknown key (did you mean tls.cert_file)"),
    Broken(
      "a misspelt key in a list", "routes:\n  - path: /\n    upstrem: ws://h",
      "2:5: routes[0].upstream: missing",
      "3:5: routes[0].upstrem: unknown key (did you mean routes[0].upstream)"),
    Broken(
      "a quote that is not closed", "listen:\n  address: \"::\n  port: 1\n",
      "2:12: not YAML: the quote is not closed"),
    Broken(
      "numbers larger than the machine's",
      "listen: { port: 99999999999999999999 }\nsession:\n"
        + "  ping: 99999999999999999999s\n  max_message: 99999999999999999999\nlimits:\n"
        + "  global_sessions: 99999999999999999999",
      "1:17: listen.port: \"99999999999999999999\" is not a port number, 0 to 65535",
      "3:9: session.ping: \"99999999999999999999s\" is too long",
      "4:16: session.max_message: 99999999999999999999 is out of range: 1KiB to 1GiB",
      "6:20: limits.global_sessions: 99999999999999999999 is out of range: 1 to 10000000"),
    Broken(
      "passwords in names", "identity: { issuer: 'https://u:s3cr3t@gate' }\ntokens: { audiences: ['https://u@a'] }",
      "1:21: identity.issuer: must not contain a user or a password: it stands in assertions and tokens",
      "2:23: tokens.audiences[0]: must not contain a user or a password: it stands in assertions and tokens"),
    Broken("a key like no other", "zzzzzz: 1", "1:1: zzzzzz: unknown key"),
    Broken(
      "a key given twice", "listen:\n  port: 1\n  address: '::'\n  port: 2",
      "4:3: listen.port: set twice, first in line 2"),
    Broken(
      "keys given twice in several places, and another error",
      "listen: { port: 1, \"port\": 2 }\nsession:\n  ping: 5\nlisten: {}\nsession: {}",
      "1:20: listen.port: set twice, first in line 1",
      "3:9: session.ping: 5 has no unit: write ms, s, m, h or d (did you mean 5s)",
      "4:1: listen: set twice, first in line 1", "5:1: session: set twice, first in line 2"),
    Broken(
      "a key given three times", "version: 1\nversion: 1\nversion: 1",
      "2:1: version: set twice, first in line 1", "3:1: version: set twice, first in line 1"),
    Broken(
      "an alias of aliases as a key", bomb + "? *j\n: 1\n",
      "11:1: a key is not a word, and the file has too many aliases to look at it"),
    Broken(
      "an alias of aliases in a key", bomb + "[*j, *j] : 1\n",
      "11:10: a key is not a word, and the file has too many aliases to look at it"),
    Broken("aliases of aliases as a value", bomb, "1:4: the file has too many values"),
    Broken(
      "a password in the URL of an upstream",
      "routes: [{ path: /, upstream: \"http://u:s3cr3t@h:1\" }, { path: /a, upstream: \"u:s3cr3t@h:1\" }]",
      "1:31: routes[0].upstream: \"http\" is not an upstream scheme: use ws, wss, unix or tcp",
      "1:78: routes[1].upstream: \"u:…@h:1\" has no scheme: use ws://, wss://, unix: or tcp://"),
    Broken(
      "a password in an origin", "routes: [{ path: /, upstream: \"ws://h:1\", origins: [\"https://u:s3cr3t@h\"] }]",
      "1:53: routes[0].origins[0]: \"https://u:…@h\" has more than a scheme, a host and a port"),
    Broken("a text for a section", "listen: 6200", "1:9: listen: expected a section with keys"),
    Broken("a list for a section", "listen:\n  - port", "2:3: listen: expected a section with keys"),
    Broken("a list for a value", "listen: { port: [1, 2] }", "1:17: listen.port: expected one value, not a list"),
    Broken("keys for a value", "listen: { port: { a: 1 } }", "1:17: listen.port: expected one value, not a section"),
    Broken("a text for a list", "routes: /", "1:9: routes: expected a list, for example [a, b]"),
    Broken("keys for a list", "routes: { path: / }", "1:9: routes: expected a list: start each element with a dash"),
    Broken("no value", "listen:\n  port:", "2:8: listen.port: value is empty"),
    Broken("no list", "routes:", "1:1: routes: value is empty; write [] for an empty list"),
    Broken("an empty text", "listen: { address: '' }", "1:20: listen.address: value is empty"),
    Broken(
      "a text for an element", "app_attest: { apps: [x] }", "1:22: app_attest.apps[0]: expected a section with keys"),
    Broken(
      "no keys at all", "- a\n- b", "1:1: the file contains no keys; expected a form such as listen: { port: 6200 }"),
    Broken("a key that is not a word", "[a]: 1", "1:1: not a valid key: expected a word"),
    Broken("brackets for a key", "\"[]\": 1", "1:1: not a valid key: expected a word"),
    Broken(
      "brackets for a key of a section", "listen: { \"[]\": 1 }", "1:11: listen: not a valid key: expected a word"),
    Broken("a path for a key", "listen.port: 6201", "1:1: not a valid key: expected a word"),
    Broken("a key with a line break", "\"a\\nb\\u2028c\": 1", "1:1: a\u{FFFD}b\u{FFFD}c: unknown key"),
    Broken(
      "an unclosed bracket", "listen: { port: 1",
      "2:1: not YAML: while parsing a flow mapping, did not find expected ',' or '}'"),
    Broken(
      "a tab", "listen:\n\tport: 1",
      "2:1: a tab cannot indent YAML: replace it with blanks"),
    Broken("two colons", "listen: port: 1", "1:13: not YAML: mapping values are not allowed in this context"),
    Broken("a control character", "listen:\n  port: 1\u{1}", "2:10: not YAML: control characters are not allowed"),
    Broken(
      "ten thousand brackets", "a: " + String(repeating: "[", count: 10_000),
      "1:5: lists and sections are nested too deeply"),
    Broken("two documents", "version: 1\n---\nversion: 1", "2:1: not one YAML document: but found another document"),
    Broken("an unknown anchor", "listen: *other", "1:9: not one YAML document: found undefined alias"),
    Broken(
      "an admin server for all addresses", "admin: { listen: '0.0.0.0:6201', token_file: good.token }",
      "1:18: admin.listen: 0.0.0.0 is not a loopback address: the admin server must be reachable only from this machine"
    ),
    Broken(
      "an admin server for all IPv6 addresses", "admin: { listen: '[::]:6201', token_file: good.token }",
      "1:18: admin.listen: :: is not a loopback address: the admin server must be reachable only from this machine"),
    Broken(
      "an admin server by name", "admin: { listen: 'localhost:6201', token_file: good.token }",
      "1:18: admin.listen: \"localhost\" is not an IP address (did you mean 127.0.0.1:6201)"),
    Broken(
      "an admin server without a port", "admin: { listen: /run/admin.sock }",
      "1:18: admin.listen: \"/run/admin.sock\" is not unix:/path or an address with a port (did you mean "
        + "unix:/run/admin.sock)"
    ),
    Broken(
      "an admin server on a relative path", "admin: { listen: 'unix:admin.sock' }",
      "1:18: admin.listen: the path of a Unix socket must be absolute: unix:/path"),
    Broken(
      "an admin server without a token", "admin: { listen: '127.0.0.1:6201' }",
      "1:1: admin.token_file: missing: every user of this machine can reach 127.0.0.1:6201"),
    Broken(
      "a token for a Unix socket", "admin: { listen: 'unix:/run/admin.sock', token_file: good.token }",
      "1:54: admin.token_file: not allowed for a Unix socket, which its file mode protects"),
    Broken(
      "a token that is too short", "admin: { listen: '127.0.0.1:6201', token_file: empty.pem }",
      "1:48: admin.token_file: DIR/empty.pem is empty"),
    Broken(
      "a token with blanks", "admin: { listen: '127.0.0.1:6201', token_file: prose.pem }",
      "1:48: admin.token_file: the first line of DIR/prose.pem is not a token of 16 characters or more"),
    Broken(
      "metrics at the gate's own address", "metrics: { listen: '127.0.0.1:6200' }",
      "1:20: metrics.listen: port 6200 is used by listen at ::: two listeners cannot share it"),
    Broken(
      "metrics at the gate's own address, written as IPv6",
      "listen: { address: 127.0.0.1 }\nmetrics: { listen: '[::ffff:127.0.0.1]:6200' }",
      "2:20: metrics.listen: port 6200 is used by listen at 127.0.0.1: two listeners cannot share it"),
    Broken(
      "metrics at the admin server's address",
      "admin: { listen: '127.0.0.1:6201', token_file: prose.pem }\nmetrics: { listen: '0.0.0.0:6201' }",
      "1:48: admin.token_file: the first line of DIR/prose.pem is not a token of 16 characters or more",
      "2:20: metrics.listen: port 6201 is used by admin.listen at 127.0.0.1: two listeners cannot share it"),
    Broken(
      "a group for a loopback address", "admin: { listen: '127.0.0.1:6201', token_file: good.token, group: staff }",
      "1:67: admin.group: has no effect for a loopback address, which every user of this machine can reach"),
    Broken(
      "a group without a listener", "admin: { group: staff }",
      "1:17: admin.group: has no effect without admin.listen"),
    Broken(
      "a collector without a scheme", "telemetry: { otlp: 'localhost:4318' }",
      "1:20: telemetry.otlp: \"localhost:4318\" is not a URL with http:// or https:// (did you mean "
        + "http://localhost:4318)"),
    Broken(
      "a collector with the path of spans", "telemetry: { otlp: 'http://localhost:4318/v1/traces' }",
      "1:20: telemetry.otlp: the gate adds /v1/traces and /v1/metrics itself (did you mean http://localhost:4318)"),
    Broken(
      "a share in percent", "telemetry: { otlp: 'http://localhost:4318', sample: 5 }",
      "1:53: telemetry.sample: \"5\" is not a number from 0 to 1"),
    Broken(
      "a collector with a password", "telemetry: { otlp: 'http://user:secret@localhost:4318' }",
      "1:20: telemetry.otlp: the URL of a collector cannot have a user, a query or a fragment"),
    Broken(
      "a collector with a line end", "telemetry: { otlp: \"http://localhost:4318/a\\nb\" }",
      "1:20: telemetry.otlp: the URL of a collector cannot have blanks, control characters or letters beyond ASCII"),
    Broken(
      "authorities for a collector without TLS",
      "telemetry: { otlp: 'http://localhost:4318', ca_file: good.token }",
      "1:54: telemetry.ca_file: has no effect for http://, which has no certificates"),
    Broken(
      "authorities without a collector", "telemetry: { ca_file: good.token }",
      "1:23: telemetry.ca_file: has no effect without telemetry.otlp"),
    Broken(
      "header fields without a name", "telemetry: { otlp: 'http://localhost:4318', headers_file: prose.pem }",
      "1:59: telemetry.headers_file: DIR/prose.pem has no header fields, or a line that is not one"),
    Broken(
      "webhooks without secrets", "webhooks: { url: 'https://hooks.example.com' }",
      "1:1: webhooks.secret_file: missing"),
    Broken(
      "webhooks with a file that has no secrets",
      "webhooks: { url: 'https://hooks.example.com', secret_file: prose.pem }",
      "1:60: webhooks.secret_file: DIR/prose.pem has no secrets, or a line that is not one"),
    Broken(
      "webhooks for a receiver without a scheme", "webhooks: { url: 'hooks.example.com', secret_file: prose.pem }",
      "1:18: webhooks.url: \"hooks.example.com\" is not a URL with http:// or https:// (did you mean "
        + "http://hooks.example.com)"),
    Broken(
      "webhooks for a receiver with a password",
      "webhooks: { url: 'https://u:p@hooks.example.com', secret_file: prose.pem }",
      "1:18: webhooks.url: the URL of a receiver cannot have a user or a fragment"),
    Broken(
      "an event that no webhook has", "webhooks: { url: 'https://h', secret_file: prose.pem, events: [logins] }",
      "1:44: webhooks.secret_file: DIR/prose.pem has no secrets, or a line that is not one",
      "1:64: webhooks.events[0]: \"logins\" is not one of registrations, revocations, refusals"),
    Broken(
      "events without a receiver", "webhooks: { events: [refusals] }",
      "1:13: webhooks.events: has no effect without webhooks.url"),
    Broken(
      "a token without a listener", "admin: { token_file: good.token }",
      "1:22: admin.token_file: has no effect without admin.listen"),
  ]

  static let values: [Broken] = [
    Broken("another version", "version: 2", "1:10: version: 2 is out of range: 1 to 1"),
    Broken(
      "a port too high", "listen: { port: 65536 }", "1:17: listen.port: \"65536\" is not a port number, 0 to 65535"),
    Broken(
      "a port with a sign", "listen: { port: +80 }", "1:17: listen.port: \"+80\" is not a port number, 0 to 65535"),
    Broken(
      "a name to listen on", "listen: { address: localhost }",
      "1:20: listen.address: \"localhost\" is not an IP address (did you mean 127.0.0.1)"),
    Broken(
      "brackets around an address", "listen: { address: '[::1]' }",
      "1:20: listen.address: \"[::1]\" is not an IP address (did you mean ::1)"),
    Broken("no event loops", "listen: { loops: 0 }", "1:18: listen.loops: 0 is out of range: 1 to 256"),
    Broken(
      "an old TLS", "tls: { min_version: 1.1 }",
      "1:21: tls.min_version: \"1.1\" is not one of 1.2, 1.3 (did you mean 1.2)"),
    Broken(
      "a boolean of YAML 1.1", "debug_mtls: { forbid_with_production: yes }",
      "1:39: debug_mtls.forbid_with_production: \"yes\" is not true or false (did you mean true)"),
    Broken(
      "a boolean in capitals", "debug_mtls: { forbid_with_production: FALSE }",
      "1:39: debug_mtls.forbid_with_production: \"FALSE\" is not true or false (did you mean false)"),
    Broken(
      "PROXY headers without trusted proxies", "listen: { proxy_protocol: v2 }",
      "1:27: listen.proxy_protocol: without listen.trusted_proxies, every connection would be closed"),
    Broken(
      "X-Forwarded-For without proxies", "listen: { forwarded_for: trust }",
      "1:26: listen.forwarded_for: has no effect without listen.trusted_proxies"),
    Broken(
      "X-Forwarded-For of everyone", "listen: { forwarded_for: trust, trusted_proxies: ['::/0'] }",
      "1:51: listen.trusted_proxies[0]: with forwarded_for: trust, every client could choose its address"),
    Broken(
      "a short head", "listen: { max_head: 4KiB }", "1:21: listen.max_head: 4KiB is out of range: 8KiB to 256KiB"),
    Broken(
      "a range with bits after its prefix", "listen: { proxy_protocol: any, trusted_proxies: [192.0.2.1/24] }",
      "1:50: listen.trusted_proxies[0]: \"192.0.2.1/24\" has bits set after its prefix (did you mean 192.0.2.0/24)"),
    Broken(
      "a range with a prefix that is too long", "listen: { proxy_protocol: any, trusted_proxies: ['2001:db8::/129'] }",
      "1:50: listen.trusted_proxies[0]: \"2001:db8::/129\" has no valid prefix length, 0 to 128"),
    Broken(
      "a proxy's name", "listen: { proxy_protocol: any, trusted_proxies: [balancer] }",
      "1:50: listen.trusted_proxies[0]: \"balancer\" is not an IP address or range"),
    Broken(
      "a rate without its time", "limits: { per_ip: { upgrades: 60 } }",
      "1:31: limits.per_ip.upgrades: \"60\" is not a rate: write a number, a slash and a duration"),
    Broken(
      "a rate with an incomplete time", "limits: { per_ip: { challenges: 60/m } }",
      "1:33: limits.per_ip.challenges: \"60/m\" is not a rate: write a number, a slash and a duration (did you "
        + "mean 60/1m)"
    ),
    Broken(
      "a limit of zero sessions of a key", "limits: { per_key: { sessions: 0 } }",
      "1:32: limits.per_key.sessions: 0 is out of range: 1 to 10000"),
    Broken(
      "an unknown rule for a full key", "limits: { per_key: { when_full: close } }",
      "1:33: limits.per_key.when_full: \"close\" is not one of refuse_newest, close_oldest"),
    Broken(
      "one of two roots, which no device can match",
      "app_attest:\n  apps: [{ team_id: AAABBBCCC1, bundle_id: a.b, environments: [development] }]\n"
        + "  trust: { attestation_root_file: cert.pem }",
      "3:35: app_attest.trust.attestation_root_file: only one of attestation_root_file and receipt_root_file is set: "
        + "no device can match both roots"),
    Broken(
      "a rate of zero", "limits: { per_key: { upgrades: 0/1m } }",
      "1:32: limits.per_key.upgrades: 0 is out of range: 1 to 10000"),
    Broken(
      "a rate over too long a time", "limits: { per_ip: { registrations: 5/2d } }",
      "1:36: limits.per_ip.registrations: 2d is out of range: 1s to 1d"),
    Broken(
      "a limit of zero sessions", "limits: { global_sessions: 0 }",
      "1:28: limits.global_sessions: 0 is out of range: 1 to 10000000"),
    Broken(
      "a misspelt choice", "app_attest: { enforcement: enforced }",
      "1:28: app_attest.enforcement: \"enforced\" is not one of enforce, monitor, off (did you mean enforce)"),
    Broken(
      "a team in lowercase", "app_attest:\n  apps:\n    - team_id: aaabbbccc1\n      bundle_id: com.example.app",
      "3:16: app_attest.apps[0].team_id: \"aaabbbccc1\" contains characters other than A-Z and 0-9 (did you "
        + "mean AAABBBCCC1)"
    ),
    Broken(
      "a team too long", "app_attest:\n  apps:\n    - team_id: AAABBBCCC12\n      bundle_id: com.example.app",
      "3:16: app_attest.apps[0].team_id: \"AAABBBCCC12\" has 11 characters instead of ten of A-Z and 0-9"),
    Broken(
      "a bundle with a wildcard", "app_attest:\n  apps: [{ team_id: AAABBBCCC1, bundle_id: com.example.* }]",
      "2:44: app_attest.apps[0].bundle_id: \"com.example.*\" contains characters other than letters, digits, "
        + "hyphen, dot and underscore"
    ),
    Broken(
      "a bundle with its team", "app_attest:\n  apps: [{ team_id: AAABBBCCC1, bundle_id: AAABBBCCC1.com.app }]",
      "2:44: app_attest.apps[0].bundle_id: \"AAABBBCCC1.com.app\" starts with the team id (did you mean com.app)"),
    Broken(
      "an app without a team", "app_attest:\n  apps:\n    - bundle_id: com.example.app",
      "3:7: app_attest.apps[0].team_id: missing"),
    Broken(
      "an unknown environment",
      "app_attest:\n  apps: [{ team_id: AAABBBCCC1, bundle_id: a.b, environments: [prod] }]",
      "2:64: app_attest.apps[0].environments[0]: \"prod\" is not one of production, development"),
    Broken(
      "no environment", "app_attest:\n  apps: [{ team_id: AAABBBCCC1, bundle_id: a.b, environments: [] }]",
      "2:49: app_attest.apps[0].environments: empty list of environments (did you mean [production])"),
    Broken(
      "an environment twice",
      "app_attest:\n  apps: [{ team_id: AAABBBCCC1, bundle_id: a.b, environments: [production, production] }]",
      "2:76: app_attest.apps[0].environments[1]: given twice"),
    Broken(
      "an unknown category",
      "app_attest:\n  apps: [{ team_id: AAABBBCCC1, bundle_id: a.b, validation_category: { allow: [appstore] } }]",
      "2:80: app_attest.apps[0].validation_category.allow[0]: \"appstore\" is not one of os, testflight, "
        + "development, app_store, enterprise, developer_id, other (did you mean app_store)"
    ),
    Broken(
      "no category",
      "app_attest:\n  apps: [{ team_id: AAABBBCCC1, bundle_id: a.b, validation_category: { allow: [] } }]",
      "2:72: app_attest.apps[0].validation_category.allow: an empty list admits no device; remove the key to "
        + "admit every category"
    ),
    Broken(
      "a time without unit", "session: { max_age: 60 }",
      "1:21: session.max_age: 60 has no unit: write ms, s, m, h or d (did you mean 60s)"),
    Broken(
      "a time with a point", "session: { max_age: 1.5h }",
      "1:21: session.max_age: \"1.5h\" is not a duration: write a whole number and ms, s, m, h or d"),
    Broken(
      "a time too long to count", "session: { max_age: 9223372036854775807d }",
      "1:21: session.max_age: \"9223372036854775807d\" is too long"),
    Broken(
      "a nonce with too long a lifetime", "app_attest: { challenge_ttl: 1h }",
      "1:30: app_attest.challenge_ttl: 1h is out of range: 1s to 10m"),
    Broken(
      "a size in other units", "session: { max_message: 32MB }",
      "1:25: session.max_message: \"MB\" is not a size unit: use B, KiB, MiB or GiB (did you mean 32MiB)"),
    Broken(
      "a size too small", "session: { max_message: 10 }",
      "1:25: session.max_message: 10 is out of range: 1KiB to 1GiB"),
    Broken(
      "a web address as upstream", "routes: [{ upstream: 'http://localhost:8080' }]",
      "1:22: routes[0].upstream: \"http\" is not an upstream scheme: use ws, wss, unix or tcp (did you mean "
        + "ws://localhost:8080)"
    ),
    Broken(
      "an upstream without scheme", "routes: [{ upstream: 'localhost:8080' }]",
      "1:22: routes[0].upstream: \"localhost:8080\" has no scheme: use ws://, wss://, unix: or tcp:// (did you "
        + "mean ws://localhost:8080)"
    ),
    Broken(
      "an upstream with a path", "routes: [{ upstream: 'ws://localhost:8080/chat' }]",
      "1:22: routes[0].upstream: an upstream URL cannot have a path: the client's target is forwarded, which "
        + "routes[].rewrite can change (did you mean ws://localhost:8080)"
    ),
    Broken(
      "an upstream with a password", "routes: [{ upstream: 'ws://me:secret@localhost' }]",
      "1:22: routes[0].upstream: an upstream URL cannot have a user name or password"),
    Broken(
      "an upstream without host", "routes: [{ upstream: 'ws://:80' }]",
      "1:22: routes[0].upstream: the upstream URL has no host"),
    Broken(
      "an upstream at port 0", "routes: [{ upstream: 'ws://h:0' }]",
      "1:22: routes[0].upstream: \"0\" is not a port number, 1 to 65535"),
    Broken(
      "an address without brackets", "routes: [{ upstream: 'ws://::1' }]",
      "1:22: routes[0].upstream: an IPv6 address needs brackets (did you mean [::1])"),
    Broken(
      "a TCP upstream without port", "routes: [{ upstream: 'tcp://h' }]",
      "1:22: routes[0].upstream: tcp:// needs a port: tcp://host:port"),
    Broken(
      "a relative socket", "routes: [{ upstream: 'unix:run/x.sock' }]",
      "1:22: routes[0].upstream: the path of a Unix socket must be absolute: unix:/path"),
    Broken(
      "a socket with an authority", "routes: [{ upstream: 'unix:///run/x.sock' }]",
      "1:22: routes[0].upstream: \"unix:///run/x.sock\" contains a host (did you mean unix:/run/x.sock)"),
    Broken(
      "a route reserved for the gate", "routes: [{ path: /attest/x, upstream: 'ws://h' }]",
      "1:18: routes[0].path: /attest/x is reserved for the gate"),
    Broken(
      "a route without slash", "routes: [{ path: chat, upstream: 'ws://h' }]",
      "1:18: routes[0].path: \"chat\" does not start with a slash (did you mean /chat)"),
    Broken(
      "a route with a pattern", "routes: [{ path: '^/chat.*$', upstream: 'ws://h' }]",
      "1:18: routes[0].path: \"^/chat.*$\" does not start with a slash, and routes match whole segments, not patterns"),
    Broken(
      "no limit, as other programs write it", "session: { max_age: 0 }",
      "1:21: session.max_age: 0 is not a duration: write off for none (did you mean off)"),
    Broken(
      "a route with dots", "routes: [{ path: /a/../b, upstream: 'ws://h' }]",
      "1:18: routes[0].path: \"/a/../b\" contains a dot segment"),
    Broken(
      "another kind of forwarding", "routes: [{ upstream: 'tcp://h:1', forward: all }]",
      "1:44: routes[0].forward: tcp:// cannot forward ordinary requests: they need an HTTP upstream"),
    Broken(
      "a database without a name", "store: { url: 'postgres://user:secret@db' }",
      "1:15: store.url: the URL has no database name: postgres://user@host/database"),
    Broken(
      "a database with a blank", "store: { url: 'postgresql://user:a secret@db/x' }",
      "1:15: store.url: the database URL contains a blank or a control character: write it percent-encoded, "
        + "for example %20"
    ),
    Broken(
      "a store of another kind, without its password", "store: { url: 'mysql://user:p@ss:word@db/x?password=a' }",
      "1:15: store.url: \"mysql://user:…@db/x?password=…\" is not a store URL: write sqlite:///path or postgres://…"),
    Broken(
      "a password file for SQLite", "store: { url: 'sqlite:///a.db', password_file: prose.pem }",
      "1:48: store.password_file: has no effect for a SQLite store, which has no password"),
    Broken(
      "a missing password file", "store: { url: 'postgres://db/x', password_file: nowhere }",
      "1:49: store.password_file: cannot read DIR/nowhere: No such file or directory (ENOENT)"),
    Broken(
      "a path for a store", "store: { url: /var/lib/state.db }",
      "1:15: store.url: \"/var/lib/state.db\" is not a store URL: write sqlite:///path or postgres://… (did "
        + "you mean sqlite:///var/lib/state.db)"
    ),
    Broken(
      "a store with a limit of zero waiting calls", "store: { max_waiting: 0 }",
      "1:23: store.max_waiting: 0 is out of range: 1 to 1000000"),
    Broken(
      "a store that keeps decisions for a minute", "store: { keep_decisions: 1m }",
      "1:26: store.keep_decisions: 1m is out of range: 1h to 365d"),
    Broken(
      "a store that keeps no decision of a key", "store: { max_decisions_per_key: 0 }",
      "1:33: store.max_decisions_per_key: 0 is out of range: 1 to 100000"),
    Broken(
      "a header of the gate that is to be kept", "identity: { keep_headers: [X-Fine, x-attest-app] }",
      "1:36: identity.keep_headers[1]: x-attest-app is set or used by the gate, so that a client's is always removed"),
    Broken(
      "a header that is kept and removed", "identity: { keep_headers: [x-a], strip_headers: [X-A] }",
      "1:28: identity.keep_headers[0]: x-a is in identity.strip_headers"),
    Broken(
      "a header with an underscore", "identity: { keep_headers: [X_A] }",
      "1:28: identity.keep_headers[0]: \"X_A\" has other characters than letters, digits and hyphens: servers would "
        + "confuse it"),
    Broken(
      "a header with a blank", "identity: { strip_headers: [X-Good, 'X Bad'] }",
      "1:37: identity.strip_headers[1]: \"X Bad\" is not the name of a header field"),
    Broken(
      "a request without host", "identity: { strip_headers: [X-Good, host] }",
      "1:37: identity.strip_headers[1]: host cannot be removed: without it, a request to the upstream is not valid"),
    Broken(
      "a handshake without key", "identity: { strip_headers: [Sec-WebSocket-Key] }",
      "1:29: identity.strip_headers[0]: Sec-WebSocket-Key cannot be removed: without it, a request to the upstream is "
        + "not valid"),
    Broken(
      "a handshake without version", "identity: { strip_headers: [Sec-WebSocket-Version] }",
      "1:29: identity.strip_headers[0]: Sec-WebSocket-Version cannot be removed: without it, a request to the upstream "
        + "is not valid"),
  ]

  static let relations: [Broken] = [
    Broken(
      "an empty client authority", "debug_mtls: { client_ca_file: empty.pem }",
      "1:31: debug_mtls.client_ca_file: DIR/empty.pem is empty"),
    Broken(
      "a client authority without certificate", "debug_mtls: { client_ca_file: prose.pem }",
      "1:31: debug_mtls.client_ca_file: DIR/prose.pem contains no certificate: no PEM block CERTIFICATE"),
    Broken(
      "a missing client authority", "debug_mtls: { client_ca_file: nowhere.pem }",
      "1:31: debug_mtls.client_ca_file: cannot read DIR/nowhere.pem: No such file or directory (ENOENT)"),
    Broken(
      "a subject with blanks", "debug_mtls:\n  allow_subjects: [\"O = Acme, CN=x\"]",
      "2:20: debug_mtls.allow_subjects[0]: \"O = Acme, CN=x\": each part of a subject is TYPE=VALUE, with a comma and "
        + "no blank between two (did you mean O=Acme,CN=x)"),
    Broken(
      "a subject with a blank at its end", "debug_mtls:\n  allow_subjects: ['CN=x ']",
      "2:20: debug_mtls.allow_subjects[0]: \"CN=x \": a blank at the end of a value is written with a backslash before it "
        + "(did you mean CN=x)"),
    Broken(
      "a subject without a type", "debug_mtls:\n  allow_subjects: [foo]",
      "2:20: debug_mtls.allow_subjects[0]: \"foo\": each part of a subject is TYPE=VALUE, with a comma and no blank "
        + "between two"),
    Broken(
      "a subject with a quotation mark", "debug_mtls:\n  allow_subjects: ['CN=\"x']",
      "2:20: debug_mtls.allow_subjects[0]: \"CN=\"x\": \" is written with a backslash before it"),
    Broken(
      "subjects without an authority", "debug_mtls:\n  allow_subjects: [CN=x]",
      "2:3: debug_mtls.allow_subjects: has no effect without debug_mtls.client_ca_file"),
    Broken(
      "partial chains without an authority", "debug_mtls: { partial_chain: true }",
      "1:30: debug_mtls.partial_chain: has no effect without debug_mtls.client_ca_file"),
    Broken(
      "revoked certificates without an authority", "debug_mtls: { crl_file: crl.pem }",
      "1:25: debug_mtls.crl_file: has no effect without debug_mtls.client_ca_file"),
    Broken(
      "client certificates with production, where this is forbidden",
      """
      debug_mtls: { client_ca_file: cert.pem, forbid_with_production: true }
      app_attest: { apps: [{ team_id: AAABBBCCC1, bundle_id: a.b }] }
      """,
      "1:31: debug_mtls.client_ca_file: client certificates admit debug builds, and AAABBBCCC1.a.b has "
        + "environment production; debug_mtls.forbid_with_production forbids this"
    ),
    Broken(
      "a simulated root with production",
      """
      app_attest:
        apps: [{ team_id: AAABBBCCC1, bundle_id: a.b, environments: [development, production] }]
        trust: { attestation_root_file: cert.pem, receipt_root_file: cert.pem }
      """,
      "3:35: app_attest.trust.attestation_root_file: a root for simulated devices is not allowed with "
        + "AAABBBCCC1.a.b in environment production",
      "3:64: app_attest.trust.receipt_root_file: a root for simulated devices is not allowed with "
        + "AAABBBCCC1.a.b in environment production"
    ),
    Broken(
      "an app twice",
      "app_attest:\n  apps:\n    - { team_id: AAABBBCCC1, bundle_id: a.b }\n    - { team_id: AAABBBCCC1, "
        + "bundle_id: a.b }",
      "4:41: app_attest.apps[1].bundle_id: the app AAABBBCCC1.a.b is configured twice"),
    Broken(
      "a route twice", "routes:\n  - { path: /a, upstream: 'ws://h' }\n  - { path: /a, upstream: 'ws://i' }",
      "3:13: routes[1].path: the route /a is configured twice"),
    Broken(
      "TLS for an upstream that has none", "routes:\n  - upstream: ws://h\n    upstream_tls: { server_name: h }",
      "3:5: routes[0].upstream_tls: has no effect for ws: only wss:// uses TLS"),
    Broken(
      "a missing authority of an upstream",
      "routes:\n  - upstream: wss://h\n    upstream_tls: { ca_file: nowhere.pem }",
      "3:30: routes[0].upstream_tls.ca_file: cannot read DIR/nowhere.pem: No such file or directory (ENOENT)"),
    Broken(
      "an audience for an upstream without assertions",
      "routes:\n  - { upstream: 'tcp://h:1', audience: chat }",
      "2:40: routes[0].audience: has no effect for tcp://: this upstream gets no identity assertion"),
    Broken(
      "a ping interval as long as the idle timeout", "session: { ping: 90s }",
      "1:18: session.ping: session.ping must be shorter than session.idle_timeout; otherwise sessions close "
        + "before the first ping"
    ),
    Broken(
      "missing challenge keys", "app_attest: { challenge_keys_file: nowhere }",
      "1:36: app_attest.challenge_keys_file: cannot read DIR/nowhere: No such file or directory (ENOENT)"),
  ]

  static let certificates: [Broken] = [
    Broken(
      "a missing certificate", "tls: { cert_file: nowhere.pem, key_file: key.pem }",
      "1:19: tls.cert_file: cannot read DIR/nowhere.pem: No such file or directory (ENOENT)"),
    Broken(
      "a folder as certificate", "tls: { cert_file: ., key_file: key.pem }",
      "1:19: tls.cert_file: cannot read DIR/.: Is a directory (EISDIR)"),
    Broken(
      "a certificate as key", "tls: { cert_file: cert.pem, key_file: cert.pem }",
      "1:39: tls.key_file: DIR/cert.pem contains no private key: no PEM block PRIVATE KEY"),
    Broken(
      "a key with a passphrase", "tls: { cert_file: cert.pem, key_file: locked.pem }",
      "1:39: tls.key_file: the private key in DIR/locked.pem is encrypted; the gate cannot ask for its passphrase"
    ),
    Broken("no certificate", "listen: { port: 1 }", "1:1: tls.cert_file: missing", "1:1: tls.key_file: missing"),
    Broken("a section without keys", "version: 1\ntls:", "2:1: tls.cert_file: missing", "2:1: tls.key_file: missing"),
    Broken("a certificate without its key", "version: 1\ntls: { cert_file: cert.pem }", "2:1: tls.key_file: missing"),
  ]
}
