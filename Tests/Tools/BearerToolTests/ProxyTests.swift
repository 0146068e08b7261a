import TestSupport
import Testing

@Suite("bearer behind a proxy", .timeLimit(.minutes(2)))
struct ProxyTests {
  private func check(
    _ variables: [String: String], _ options: String = ""
  ) async throws -> BearerShell.Result {
    try await Places.withTemporaryFolder { folder in
      let shell = BearerShell(folder)
      try shell.configure(["work": ["issuer: https://idp.example.test", "client_id: app"]])
      return try await shell.run("providers check \(options) work", environment: variables.mapValues { $0 })
    }
  }

  @Test("The provider is asked through the proxy, and the check reports the proxy without its password")
  func asked() async throws {
    let relay = try ForwardProxyServer(.answer(Array("HTTP/1.1 407 x\r\n\r\n".utf8)))
    defer { relay.stop() }
    let proxy = "http://user:hunter2@127.0.0.1:\(relay.port)"
    let result = try await check(["HTTPS_PROXY": proxy])
    let place = "http://127.0.0.1:\(relay.port) (HTTPS_PROXY)"
    #expect(result.code == 1 && result.output.contains("  network  reached through the proxy \(place)"), "\(result)")
    #expect(
      result.output.contains {
        $0.hasPrefix("  problem  ") && $0.contains("the proxy \(place) answered CONNECT with status 407")
      }, "\(result)")
    #expect(relay.heads.first?.hasPrefix("CONNECT idp.example.test:443 ") == true)
    #expect(relay.heads.first?.contains("\r\nProxy-Authorization: Basic dXNlcjpodW50ZXIy") == true)
    let json = try await check(["HTTPS_PROXY": proxy], "--json --debug")
    #expect(json.output.joined().contains(#""proxy""#), "\(json)")
    #expect(!"\(result)\(json)".contains("hunter2") && !"\(result)\(json)".contains("dXNlcj"))
  }

  @Test("An exception is reported, and a faulty variable is named with what to write")
  func others() async throws {
    let direct = try await check(["https_proxy": "http://127.0.0.1:1", "no_proxy": "idp.example.test"])
    #expect(direct.output.contains("  network  reached directly (no_proxy)"), "\(direct)")
    let faulty = try await check(["all_proxy": "socks5h://user:hunter2@127.0.0.1:1"])
    #expect(faulty.code == 1 && !"\(faulty)".contains("hunter2"), "\(faulty)")
    #expect(
      faulty.output.contains {
        $0.contains("all_proxy: a SOCKS proxy") && $0.contains("write all_proxy=http://HOST:PORT")
      },
      "\(faulty)")
  }
}
