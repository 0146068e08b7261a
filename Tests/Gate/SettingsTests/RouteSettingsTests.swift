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
    #expect(try Kind<CollectorAddress>.collector.read(url).authority == host)
  }
}
