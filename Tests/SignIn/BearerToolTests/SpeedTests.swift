import Foundation
import OIDCClient
import TestSupport
import Testing

@Suite("The speed and memory of bearer", .timeLimit(.minutes(3)))
struct SpeedTests {
  @Test("C-059 A token from the store needs no network, little time and at most 48 MiB")
  func store() async throws {
    try await withHostileProvider { shell, provider in
      try await provider.control(#"{"fault": "large_token"}"#)
      try await shell.signIn(provider)
      try await provider.stop()
      // 50 ms are wanted of a release build; a test allows three times as much on a shared machine.
      let limit = Duration.milliseconds(150)
      var best = Duration.seconds(60)
      // A busy machine adds time of its own, so that the best of some tries counts.
      for _ in 1...60 where best >= limit {
        let start = ContinuousClock.now
        #expect(try await shell.run("token work").code == 0)
        best = min(best, ContinuousClock.now - start)
      }
      print("bearer token from the store: \(best)")
      #expect(best < limit)
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
      for command in ["token work --rejected old", "login --timeout 20 work", "status", "providers check"] {
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

  @Test("C-05A With a delay of 200 ms, a sign-in needs at most four round trips after the redirect")
  func delay() async throws {
    try await Places.withTemporaryFolder { folder in
      let provider = try await HostileProvider()
      let port = try #require(URL(string: provider.description.issuer)?.port.map(UInt16.init))
      var slow = FaultProxy.Fault()
      slow.pause = 100_000
      let proxy = try FaultProxy(to: port, up: slow, down: slow)
      try await provider.control(#"{"issuer": "http://127.0.0.1:\#(proxy.port)"}"#)
      let shell = BearerShell(folder)
      try shell.configure([
        "work": ["issuer: http://127.0.0.1:\(proxy.port)", "client_id: public-client", "dpop: off"]
      ])
      let limit = Duration.milliseconds(4 * 200 + 200)
      var best = Duration.seconds(60)
      // A busy machine adds time of its own, so that the best of some tries counts.
      for _ in 1...5 where best >= limit {
        let login = try shell.start("login --no-browser --timeout 30 work")
        let address = try await login.errors.first("the address") { $0.hasPrefix("http") }
        let redirect = try await ChildProcess.run(
          "/usr/bin/curl", ["-s", "-o", "/dev/null", "-w", "%{redirect_url}", address])
        let start = ContinuousClock.now
        let page = try await ChildProcess.run("/usr/bin/curl", ["-s", redirect.output[0]])
        best = min(best, ContinuousClock.now - start)
        #expect(page.output == ["Signed in at work. You can close this window."])
        _ = try await login.exit()
      }
      print("after the redirect, with 200 ms of delay: \(best)")
      #expect(best < limit)
      try await provider.stop()
    }
  }

  #if !DEBUG
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
        "/usr/bin/python3", [ProjectFile.path("Tests/SignIn/Programs/id_tokens.py")])
      let minted = try JSONDecoder().decode(Minted.self, from: Data(run.output.joined().utf8))
      let item = try #require(minted.cases.first { $0.name == algorithm })
      let verifier = IDTokenVerifier(keys: try ProviderKeys(json: Array(item.keys.utf8)))
      let expected = IDTokenExpectation(
        issuer: "https://login.example.com", clientID: "app", nonce: "n-0S6_WzA2Mj", accessToken: "access token",
        time: Date(timeIntervalSince1970: 1_800_000_000))
      var best = Duration.seconds(1)
      for _ in 0..<100 where best >= .microseconds(3 * most) {
        let start = ContinuousClock.now
        for _ in 0..<50 { try await verifier.verify(IDToken(item.token), as: expected) }
        best = min(best, (ContinuousClock.now - start) / 50)
      }
      print("an ID token with \(algorithm): \(best)")
      #expect(best < .microseconds(3 * most))
    }
  #endif
}
