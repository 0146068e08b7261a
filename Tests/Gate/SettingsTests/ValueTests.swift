@testable import ConfigurationEngine
import Testing
import Transport

@testable import Settings

@Suite("Parsing of values")
struct ValueTests {
  @Test(
    "Durations are a whole number and a unit",
    arguments: [
      ("500ms", Duration.milliseconds(500)), ("60s", .seconds(60)), ("5m", .seconds(300)), ("12h", .seconds(43_200)),
      ("1d", .seconds(86_400)), ("0s", .zero),
    ])
  func durations(_ text: String, _ duration: Duration) throws {
    #expect(try Kind<Duration>.duration(0...86_400_000).read(text) == duration)
  }

  @Test("A URL of another server is shown without what may be a key")
  func maskedURLs() {
    #expect(MaskedURL.server("https://hooks.example.com/T0/secret?x=1") == "https://hooks.example.com/***")
    #expect(MaskedURL.server("https://hooks.example.com:8443?key=1") == "https://hooks.example.com:8443/***")
    #expect(MaskedURL.server("https://hooks.example.com") == "https://hooks.example.com")
    #expect(MaskedURL.withoutQuery("https://a.example/send?key=1&to={{to}}") == "https://a.example/send?***")
    #expect(MaskedURL.withoutQuery("https://a.example/send") == "https://a.example/send")
  }

  @Test(
    "An invalid duration is refused", arguments: ["", "s", "60", "-1s", "1 s", "1S", "1h30m", "1e3s", "١s", "60sec"])
  func notDurations(_ text: String) {
    #expect(throws: InvalidSetting.self) { try Kind<Duration>.duration(0...86_400_000).read(text) }
  }

  @Test(
    "Sizes are a whole number and a binary unit",
    arguments: [
      ("1024", 1024), ("2048B", 2048), ("1KiB", 1024), ("32MiB", 32 << 20), ("1GiB", 1 << 30),
    ])
  func sizes(_ text: String, _ size: Int) throws {
    #expect(try Kind<Int>.size(1024...1 << 30).read(text) == size)
  }

  @Test(
    "An invalid size is refused",
    arguments: ["", "MiB", "1MB", "1 MiB", "1.5MiB", "-1", "1TiB", "9223372036854775807GiB"])
  func notSizes(_ text: String) {
    #expect(throws: InvalidSetting.self) { try Kind<Int>.size(1024...1 << 30).read(text) }
  }

  @Test(
    "Upstreams are parsed in all their forms",
    arguments: [
      ("ws://localhost", UpstreamAddress(scheme: .ws, host: "localhost", port: 80)),
      ("ws://localhost:8080/", UpstreamAddress(scheme: .ws, host: "localhost", port: 8080)),
      ("wss://a.example", UpstreamAddress(scheme: .wss, host: "a.example", port: 443)),
      ("ws://[::1]:9", UpstreamAddress(scheme: .ws, host: "::1", port: 9)),
      ("wss://[2001:db8::1]", UpstreamAddress(scheme: .wss, host: "2001:db8::1", port: 443)),
      ("tcp://10.0.0.1:23", UpstreamAddress(scheme: .tcp, host: "10.0.0.1", port: 23)),
      ("unix:/run/app.sock", UpstreamAddress(scheme: .unix, host: "/run/app.sock", port: 0)),
      ("ws://my_service:1", UpstreamAddress(scheme: .ws, host: "my_service", port: 1)),
    ])
  func upstreams(_ text: String, _ upstream: UpstreamAddress) throws {
    #expect(try Kind<UpstreamAddress>.upstream.read(text) == upstream)
  }

  @Test(
    "An invalid upstream is refused",
    arguments: [
      "", "ws:", "ws://", "ws:///", "ws://h:", "ws://h:x", "ws://h:65536", "ws://h:1:2", "ws://h?x", "ws://h#x",
      "ws://[::1", "ws://[::1\0x]:80",
      "ws://[::1]x", "ws://[h]", "ws://-h", "ws://h..i", "ws://h i", "ws://é", "tcp://h:1/", "unix:", "unix:/",
      "WS://h",
      "unix:/" + String(repeating: "x", count: 107), "ws://" + String(repeating: "x", count: 64),
    ])
  func notUpstreams(_ text: String) {
    #expect(throws: InvalidSetting.self) { try Kind<UpstreamAddress>.upstream.read(text) }
  }

  @Test(
    "Addresses are IPv4 or IPv6", arguments: ["::", "::1", "0.0.0.0", "127.0.0.1", "2001:db8::1", "::ffff:1.2.3.4"])
  func addresses(_ text: String) throws {
    #expect(try Kind<String>.address.read(text) == text)
  }

  @Test(
    "An invalid address is refused",
    arguments: ["", "*", "127.1", "1.2.3.4.5", "256.1.1.1", ":::", "fe80::1%eth0", "host", "127.0.0.1\0x", "::1\0x"])
  func notAddresses(_ text: String) {
    #expect(throws: InvalidSetting.self) { try Kind<String>.address.read(text) }
  }

  @Test("Text after a NUL is no part of an address range", arguments: ["10.0.0.0\0x/8", "2001:db8::\0x/32", "::1\0"])
  func notRanges(_ text: String) {
    #expect(throws: InvalidSetting.self) { try Kind<GateSettings.AddressRange>.addressRange.read(text) }
  }

  @Test(
    "Routes are paths in their normal form", arguments: ["/", "/a", "/a/b", "/attestation", "/.well-known/x", "/a:b@c"])
  func routes(_ text: String) throws {
    #expect(try Kind<String>.routePath.read(text) == text)
  }

  @Test(
    "An invalid route is refused",
    arguments: [
      "", "a", "//", "/a/", "/a//b", "/.", "/a/..", "/%41", "/a?b", "/a#b", "/a b", "/é", "/attest", "/attest/register",
      "/.well-known/sallyport", "/a\\b", "/a*",
    ])
  func notRoutes(_ text: String) {
    #expect(throws: InvalidSetting.self) { try Kind<String>.routePath.read(text) }
  }

  @Test("A wildcard route as in other proxies is refused with a suggestion", arguments: ["/*", "/a/*", "/a*"])
  func wildcards(_ text: String) {
    let problem = #expect(throws: InvalidSetting.self) { try Kind<String>.routePath.read(text) }
    #expect(problem?.suggestion == (text == "/*" ? "/" : "/a"))
  }

  @Test("Limits can be switched off")
  func off() throws {
    let workspace = try Workspace()
    let settings = try workspace.load(yaml: "session: { max_age: off, idle_timeout: off, ping: off }")
    #expect(
      settings.session.limits.maxAge == nil && settings.session.limits.idleTimeout == nil
        && settings.session.limits.pingInterval == nil)
  }

  @Test("A reason quotes the value on one short line")
  func quoting() {
    #expect(InvalidSetting.quoted("a\nb") == "\"a\\u{a}b\"")
    #expect(InvalidSetting.quoted(String(repeating: "x", count: 100)).count == 63)
  }

  @Test(
    "PEM labels are found only between matching lines",
    arguments: [
      ("-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----", ["CERTIFICATE"]),
      ("text\r\n-----BEGIN A-----\r\nx\r\n-----END A-----\r\n-----BEGIN B-----\n-----END B-----", ["A", "B"]),
      ("-----BEGIN CERTIFICATE-----\nx", []), ("-----END CERTIFICATE-----", []),
      ("-----BEGIN A-----\n-----END B-----", []), ("-----BEGIN A", []), ("", []),
    ])
  func pem(_ text: String, _ labels: [String]) {
    #expect(PEM.labels(in: Array(text.utf8)) == labels)
  }
}
