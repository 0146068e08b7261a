import Foundation
import OIDCClient
import TestSupport
import Testing

@Suite("What a call of bearer needs", .timeLimit(.minutes(3)))
struct CostTests {
  @Test("C-059 A token from the store needs no network")
  func store() async throws {
    try await withHostileProvider { shell, provider in
      try await provider.control(#"{"fault": "large_token"}"#)
      try await shell.signIn(provider)
      try await provider.stop()
      #expect(try await shell.run("token work").code == 0)
    }
  }

  @Test("C-059 A sign-in and a refresh need at most 48 MiB")
  func memory() async throws {
    try await withHostileProvider { shell, provider in
      try await provider.control(#"{"fault": "large_token"}"#)
      try await shell.signIn(provider)
      let token = try await shell.run("token work").output[0]
      try shell.write(token + "\n", to: "old")
      let browser = shell.environment.merging(["BROWSER": shell.folder + "/browser"]) { $1 }
      for command in ["token work --rejected old", "login --timeout 90 work", "status", "providers check"] {
        let most = try await ChildProcess.peakMemory(
          try Places.product("bearer"), command.split(separator: " ").map(String.init), environment: browser,
          in: shell.folder)
        #expect(most != nil, "\(command)")
        print("bearer \(command): \(most ?? 0) KiB")
        // Users run optimized builds.
        #if !DEBUG
          #expect(try #require(most) <= 48 << 10, "\(command)")
        #endif
      }
    }
  }

  @Test("C-05A A sign-in needs at most four round trips after the redirect")
  func roundTrips() async throws {
    try await Places.withTemporaryFolder { folder in
      let provider = try await HostileProvider()
      let port = try #require(URL(string: provider.description.issuer)?.port.map(UInt16.init))
      let proxy = try FaultProxy(to: port)
      try await provider.control(#"{"issuer": "http://127.0.0.1:\#(proxy.port)"}"#)
      let shell = BearerShell(folder)
      try shell.configure([
        "work": ["issuer: http://127.0.0.1:\(proxy.port)", "client_id: public-client", "dpop: off"]
      ])
      let login = try shell.start("login --no-browser --timeout 30 work")
      let address = try await login.errors.first("the address") { $0.hasPrefix("http") }
      let (jar, redirect) = try await shell.authorize(address)
      let before = proxy.countOfRoundTrips
      let page = try await ChildProcess.run("/usr/bin/curl", ["-s", "-b", jar, redirect])
      #expect(page.output == ["Signed in at work. You can close this window."])
      #expect(try await login.exit() == .code(0))
      let count = proxy.countOfRoundTrips - before
      #expect((1...4).contains(count), "\(count)")
      try await provider.stop()
    }
  }
}

#if !DEBUG
  @Suite(
    "The speed of bearer", .timeLimit(.minutes(3)),
    .enabled("scripts/test --speed runs it") { ProcessInfo.processInfo.environment["SALLYPORT_TEST_SPEED"] != nil })
  struct SpeedTests {
    @Test(
      "C-016 An ID token is verified in 300 us with RS256 and 500 us with ES256",
      arguments: [("RS256", 300), ("ES256", 500)])
    func verification(algorithm: String, most: Int) async throws {
      struct Minted: Decodable {
        struct Case: Decodable {
          let name: String
          let token: String
          let keys: String
        }
        let cases: [Case]
      }
      let run = try await ChildProcess.run(
        "/usr/bin/python3", [ProjectFile.path("Tests/App/Programs/id_tokens.py")])
      let minted = try JSONDecoder().decode(Minted.self, from: Data(run.output.joined().utf8))
      let item = try #require(minted.cases.first { $0.name == algorithm })
      let verifier = IDTokenVerifier(keys: try ProviderKeys(json: Array(item.keys.utf8)))
      let expected = IDTokenExpectation(
        issuer: "https://login.example.com", clientID: "app", nonce: "n-0S6_WzA2Mj", accessToken: "access token",
        time: Date(timeIntervalSince1970: 1_800_000_000))
      var best = Duration.seconds(1)
      for _ in 0..<100 {
        let start = ContinuousClock.now
        for _ in 0..<50 { try await verifier.verify(IDToken(item.token), as: expected) }
        best = min(best, (ContinuousClock.now - start) / 50)
      }
      print("an ID token with \(algorithm): \(best)")
      #expect(best < .microseconds(most))
    }
  }
#endif
