@testable import ConfigurationEngine
import Testing

@testable import Settings

@Suite("The settings of routes")
struct RouteSettingsTests {
  private func route(_ yaml: String, upstream: String = "ws://127.0.0.1:8080") throws -> GateSettings.Route {
    let settings = try Workspace().load(yaml: "routes: [{ upstream: \"\(upstream)\", \(yaml) }]")
    return try #require(settings.routes.first)
  }

  @Test("By default a route has no subprotocol, 64 KiB for a response's head, and no origin of another host")
  func defaults() throws {
    let route = try route("path: /a")
    #expect(route.subprotocol == nil && route.maxResponseHead == 64 << 10 && route.origins == [])
  }

  @Test("Everything is read")
  func everything() throws {
    let route = try route(
      "subprotocol: mqtt, max_response_head: 128KiB, "
        + "origins: ['capacitor://localhost', 'file://', 'null', 'https://a.example:8443', any-with-assertion]",
      upstream: "tcp://127.0.0.1:1883")
    #expect(route.subprotocol == "mqtt" && route.maxResponseHead == 128 << 10)
    #expect(
      route.origins == [
        .exact("capacitor://localhost"), .exact("file://"), .exact("null"), .exact("https://a.example:8443"),
        .anyWithAssertion,
      ])
  }

  @Test("Several servers are a list or a text with commas, in the file and in a variable")
  func servers() throws {
    let expected = ["a", "b"].map { GateSettings.Upstream.webSocket(host: $0, port: 80) }
    for list in ["[ws://a, ws://b]", "'ws://a,ws://b'", "'ws://a, ws://b:80'"] {
      let route = try #require(try Workspace().load(yaml: "routes: [{ upstream: \(list) }]").routes.first)
      #expect(route.upstreams == expected && route.balance == .sessions, "\(list)")
    }
    let route = try route("balance: device", upstream: "wss://a, wss://b:8443")
    #expect(route.upstreams.count == 2 && route.balance == .device)
  }

  @Test("The places of assertions besides the header fields are those that the route lists")
  func credentials() throws {
    #expect(try route("path: /a").carriers == [])
    #expect(try route("credentials: [subprotocol]").carriers == [.subprotocol])
    #expect(try route("credentials: [query, subprotocol]").carriers == [.query, .subprotocol])
    let faults = try Workspace().faults(yaml: "routes: [{ upstream: ws://a, credentials: [cookie] }]")
    #expect(faults.count == 1 && faults[0].contains("routes[0].credentials[0]: \"cookie\" is not"), "\(faults)")
  }

  @Test("A target and a host are rewritten as the route says")
  func rewriting() throws {
    #expect(try route("path: /a").rewrite == nil && route("path: /a").host == nil)
    #expect(try route("path: /a, strip_prefix: true").rewrite == "/")
    #expect(try route("path: /a, rewrite: /v2/x").rewrite == "/v2/x")
    #expect(try route("host: keep").host == nil && route("host: chat.internal:81").host == "chat.internal:81")
    #expect(try route("host: upstream", upstream: "ws://a").host == "a")
    #expect(try route("host: upstream", upstream: "ws://[::1]:81").host == "[::1]:81")
    #expect(try route("host: upstream", upstream: "wss://a").host == "a")
    #expect(try route("host: upstream", upstream: "unix:/run/a.sock").host == "localhost")
  }

  static let faultyServers: [(servers: String, fault: String)] = [
    ("[ws://a, ws://a:80]", "\"ws://a:80\" is given twice"), ("[ws://a, wss://b]", "one scheme, not ws and wss"),
    ("[]", "routes[0].upstream: the list is empty"), ("[ws://a, [ws://b]]", "expected a list of values"),
    ("['ws://a,ws://b']", "contains a comma"), ("'ws://a,'", "a server is missing before or after a comma"),
    ("'ws://a,,ws://b'", "a server is missing"), ("[ws://a, '']", "a server is missing"),
    ("[ws://a, http://b]", "did you mean ws://b"),
    ("[\((1...65).map { "ws://a\($0)" }.joined(separator: ", "))]", "more than 64 servers"),
  ]

  @Test("A faulty list of servers is refused with its key", arguments: faultyServers)
  func faultyList(_ servers: String, _ fault: String) throws {
    let faults = try Workspace().faults(yaml: "routes: [{ upstream: \(servers) }]")
    #expect(faults.count == 1 && faults[0].contains(fault), "\(faults)")
  }

  @Test("What contradicts the servers of a route is refused")
  func contradictions() throws {
    for (yaml, fault) in [
      ("upstream: [ws://a, ws://b], host: upstream", "routes[0].host: several servers have no common address"),
      ("upstream: ws://a, strip_prefix: true, rewrite: /v2", "routes[0].rewrite: contradicts strip_prefix"),
      ("upstream: tcp://a:1, strip_prefix: true", "routes[0].strip_prefix: has no effect for tcp://"),
      ("upstream: tcp://a:1, host: b", "routes[0].host: has no effect for tcp://"),
      ("upstream: tcp://a:1, rewrite: /b", "routes[0].rewrite: has no effect for tcp://"),
      ("upstream: tcp://a:1, health: { path: /h }", "routes[0].health.path: has no effect for tcp://"),
      ("upstream: ws://a, health: { path: /h }", "routes[0].health.path: has an effect only for several servers"),
      ("upstream: [ws://a, ws://b], health: { interval: 5s }", "has no effect without routes[0].health.path"),
      ("upstream: [ws://a, ws://b], health: { path: h }", "did you mean /h"),
      ("upstream: [ws://a, ws://b], health: { path: /h, interval: 500ms }", "is out of range"),
      ("upstream: ws://a, max_head: 32KiB", "routes[0].max_head: is more than listen.max_head, 16KiB"),
      ("upstream: ws://a, max_head: 512B", "512B is out of range: 1KiB to 256KiB"),
      ("upstream: ws://a, host: 'a/b'", "is not keep, upstream, or a host"),
      ("upstream: ws://a, host: 'a b'", "is not keep, upstream, or a host"),
      ("upstream: ws://a, host: 'u@a'", "is not keep, upstream, or a host"),
    ] {
      let faults = try Workspace().faults(yaml: "routes: [{ path: /x, \(yaml) }]")
      #expect(faults.count == 1 && faults[0].contains(fault), "\(yaml): \(faults)")
    }
  }

  static let faulty: [(yaml: String, fault: String)] = [
    ("subprotocol: mqtt", "routes[0].subprotocol: has an effect only for tcp://"),
    ("subprotocol: 'a b'", "is not a token"), ("subprotocol: 'a,b'", "is not a token"),
    ("max_response_head: 4095", "4095 is out of range: 4KiB to 1MiB"),
    ("max_response_head: 2MiB", "2MiB is out of range: 4KiB to 1MiB"),
    ("origins: ['*']", "did you mean any-with-assertion"), ("origins: [localhost]", "is not an origin"),
    ("origins: ['https://a.example/']", "did you mean https://a.example"),
    ("origins: ['https://u@a.example']", "has more than a scheme, a host and a port"),
    ("origins: ['https://*.a.example']", "has a wildcard"),
    ("origins: ['https://a.example:x']", "no valid host and port"),
    ("origins: ['https://a:0']", "no valid host and port"),
    ("origins: ['https://a..example']", "no valid host and port"),
    ("origins: ['https://:1']", "no valid host and port"),
    ("origins: ['https://[::1']", "no valid host and port"), ("origins: ['https://a:01']", "no valid host and port"),
    ("origins: ['https://a:65536']", "no valid host and port"), ("origins: ['x://-a']", "no valid host and port"),
    ("origins: ['https://A.example']", "did you mean https://a.example"),
    ("origins: ['https://a.example:443']", "did you mean https://a.example"), ("origins: ['https://']", "has no host"),
    ("origins: ['null', 'null']", "routes[0].origins[1]: given twice"), ("origins: ['1a://b']", "is not an origin"),
  ]

  @Test("A faulty value is refused with its key", arguments: faulty)
  func faults(_ yaml: String, _ fault: String) throws {
    let faults = try Workspace().faults(yaml: "routes: [{ upstream: \"ws://127.0.0.1:8080\", \(yaml) }]")
    #expect(faults.count == 1 && faults[0].contains(fault), "\(faults)")
  }

  @Test(
    "The Host of a collector has no default port",
    arguments: [
      ("http://h:80", "h"), ("http://h", "h"), ("https://h:443/x", "h"), ("https://h", "h"), ("http://h:443", "h:443"),
      ("https://h:80", "h:80"), ("http://h:4318", "h:4318"), ("http://[::1]:80", "[::1]"),
      ("https://[::1]:1", "[::1]:1"),
    ])
  func collectorHost(_ url: String, _ host: String) throws {
    #expect(try Kind<ServerAddress>.collector.read(url).authority == host)
  }
}
