import ByteCoding
import Foundation
import Wire
@testable import MFADelivery
import MFADomain
import MFAFixtures
import TestSupport
import Testing

@Suite("Apple Push Notification service", .serialized, .timeLimit(.minutes(2)))
struct APNSTests {
  private func provider(
    _ server: PushServer, _ clock: ManualClock, key: APNSKey? = nil, authorityFile: String? = nil,
    templates: MessageTemplates = .builtIn, exchangeTime: Duration = .seconds(10)
  ) throws -> APNSProvider {
    return APNSProvider(
      key: try key ?? APNSKey(pem: server.pem, keyID: PushServer.keyID, teamID: PushServer.teamID),
      endpoint: server.url,
      domain: "example.com", templates: templates, authorityFile: authorityFile ?? server.authorityFile,
      exchangeTime: exchangeTime, clock: clock.wall, proxies: .none)
  }

  /// Calls `body` with a server and a provider whose clocks agree.
  private func serving(_ body: (PushServer, APNSProvider, ManualClock) async throws -> Void) async throws {
    try await PushServer.with(.apns) { server in
      let clock = ManualClock()
      try await server.command(["now": .number(Double(clock.now.seconds))])
      try await body(server, provider(server, clock), clock)
    }
  }

  private func failure(_ provider: APNSProvider, _ notification: PushNotification) async -> PushFailure? {
    do throws(PushFailure) {
      try await provider.deliver(notification)
      return nil
    } catch {
      return error
    }
  }

  @Test("a sign-in is a request of HTTP/2 with topic, end, category and the id of the push, and with no other fact")
  func signIn() async throws {
    try await serving { server, provider, clock in
      let push = UUID()
      try await provider.deliver(.sample(.apns, .signIn(push: push), at: clock.now))
      let request = try await server.requests(1)[0]
      #expect(request["status"] == 200)
      #expect(request["path"]?.text == "/3/device/" + PushNotification.deviceToken)
      let id = push.uuidString.lowercased()
      let headers = request["headers"]
      #expect(headers?["apns-topic"] == "com.example.app" && headers?["apns-push-type"] == "alert")
      #expect(headers?["apns-priority"] == "10" && headers?["apns-collapse-id"] == .string(id))
      #expect(headers?["apns-expiration"] == .string(String(clock.now.seconds + 120)))
      let claims = request["claims"]
      #expect(claims?["kid"] == .string(PushServer.keyID) && claims?["iss"] == .string(PushServer.teamID))
      #expect(claims?["iat"]?.int == Int(clock.now.seconds))
      let text: JSONValue = [
        "title": "Is this you?", "body": "A sign-in waits for your approval. Open the app to answer.",
      ]
      #expect(
        request["payload"] == [
          "aps": [
            "alert": text, "sound": "default", "category": "SIGN_IN_APPROVAL", "interruption-level": "time-sensitive",
          ], "push": .string(id),
        ])
    }
  }

  @Test("a notice has its number, another category, and does not break through a focus")
  func notice() async throws {
    try await serving { server, provider, clock in
      try await provider.deliver(.sample(.apns, .notice(sequence: 7), at: clock.now))
      let payload = try await server.requests(1)[0]["payload"]
      #expect(payload?["notice"] == "7" && payload?["push"] == nil)
      #expect(payload?["aps"]?["category"] == "ACCOUNT_NOTICE" && payload?["aps"]?["interruption-level"] == "active")
    }
  }

  @Test("all notifications share a connection, also at the same time, and a provider token")
  func shared() async throws {
    try await serving { server, provider, clock in
      let now = clock.now
      try await provider.deliver(.sample(at: now))
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<20 { group.addTask { try await provider.deliver(.sample(at: now)) } }
        try await group.waitForAll()
      }
      let requests = try await server.requests(21)
      #expect(requests.allSatisfy { $0["status"] == 200 && $0["connection"] == 1 })
      #expect(Set(requests.compactMap { $0["headers"]?["authorization"]?.text }).count == 1)
    }
  }

  @Test("the environment of the attested key selects Apple's server")
  func environments() async throws {
    let now = ManualClock().now
    #expect(APNSProvider.server(for: try PushNotification.sample(at: now).address) == "https://api.push.apple.com")
    let development = try PushNotification.sample(isProduction: false, at: now).address
    #expect(APNSProvider.server(for: development) == "https://api.sandbox.push.apple.com")
  }

  @Test(
    "each answer of Apple has its consequence",
    arguments: [
      (400, "BadDeviceToken", PushFailure.Kind.unregistered(since: nil)),
      (400, "DeviceTokenNotForTopic", .refused), (400, "BadTopic", .refused),
      (400, "", .refused), (403, "InvalidProviderToken", .configuration), (403, "BadCertificate", .configuration),
      (404, "BadPath", .refused), (413, "PayloadTooLarge", .refused), (302, "", .refused),
      (408, "", .temporary(after: nil, isOfService: true)),
      (429, "TooManyRequests", .temporary(after: nil, isOfService: false)),
      (429, "TooManyProviderTokenUpdates", .temporary(after: nil, isOfService: true)),
      (500, "InternalServerError", .temporary(after: nil, isOfService: true)),
      (503, "ServiceUnavailable", .temporary(after: nil, isOfService: true)),
    ])
  func answers(_ status: Int, _ reason: String, _ kind: PushFailure.Kind) async throws {
    try await serving { server, provider, clock in
      try await server.answer(status, ["reason": .string(reason)])
      let failure = await failure(provider, try .sample(at: clock.now))
      #expect(failure?.kind == kind, "\(failure as Any)")
      #expect(try await server.requests().count == 1)
      // The next one is sent again.
      try await provider.deliver(.sample(at: clock.now))
    }
  }

  @Test("an unregistered address comes with its time, and a wait with its length")
  func details() async throws {
    try await serving { server, provider, clock in
      try await server.answer(410, ["reason": "Unregistered", "timestamp": 1_767_225_000_123])
      let gone = await failure(provider, try .sample(at: clock.now))
      #expect(gone?.kind == .unregistered(since: Timestamp(milliseconds: 1_767_225_000_123)))
      for (field, wait) in [("17", Duration.seconds(17)), ("99999", .seconds(600)), ("-5", nil), ("soon", nil)] {
        try await server.answer(503, ["reason": "Shutdown"], headers: ["retry-after": .string(field)])
        let failure = await failure(provider, try .sample(at: clock.now))
        #expect(failure?.kind == .temporary(after: wait, isOfService: true), "\(field)")
      }
    }
  }

  @Test("a reason that is no word of Apple's does not reach the log")
  func foreignReason() async throws {
    try await serving { server, provider, clock in
      for reason in ["line\nbreak", "\u{1B}[2J", String(repeating: "a", count: 61)] {
        try await server.answer(400, ["reason": .string(reason)])
        let failure = await failure(provider, try .sample(at: clock.now))
        #expect(failure == PushFailure(.refused, "status 400"))
      }
    }
  }

  @Test("a provider token serves for 45 minutes, and is then replaced")
  func renewal() async throws {
    try await serving { server, provider, clock in
      for _ in 0..<3 {
        try await provider.deliver(.sample(at: clock.now))
        clock.advance(by: .seconds(1349))
        try await server.command(["now": .number(Double(clock.now.seconds))])
      }
      let tokens = try await server.requests(3).map { $0["headers"]?["authorization"] }
      #expect(tokens[0] == tokens[1] && tokens[1] != nil)
      clock.advance(by: .seconds(2))
      try await provider.deliver(.sample(at: clock.now))
      #expect(try await server.requests(4)[3]["headers"]?["authorization"] != tokens[2])
    }
  }

  @Test("a token that Apple calls expired is replaced once, and not before it is twenty minutes old")
  func expired() async throws {
    try await serving { server, provider, clock in
      let start = clock.now.seconds
      try await provider.deliver(.sample(at: clock.now))
      try await server.command(["now": .number(Double(start + 3601))])
      clock.advance(by: .seconds(1199))
      let early = await failure(provider, try .sample(at: clock.now))
      #expect(early?.kind == .configuration && early?.reason.contains("clock") == true)
      #expect(try await server.requests(2).count == 2)
      clock.advance(by: .seconds(1))
      try await provider.deliver(.sample(at: clock.now))
      let requests = try await server.requests(4)
      #expect(requests.map { $0["status"]?.int } == [200, 403, 403, 200])
      // Another clock that is wrong by more: one renewal, and no loop.
      try await server.command(["now": .number(Double(start + 90000))])
      clock.advance(by: .seconds(1200))
      #expect(await failure(provider, try .sample(at: clock.now)) == APNSAnswer.expiredToken)
      #expect(try await server.requests().count == 6)
    }
  }

  @Test("another instance of the key, as a reload makes it, uses the same provider token")
  func reload() async throws {
    try await serving { server, provider, clock in
      try await provider.deliver(.sample(at: clock.now))
      clock.advance(by: .seconds(5))
      try await self.provider(server, clock).deliver(.sample(at: clock.now))
      let requests = try await server.requests(2)
      #expect(requests.allSatisfy { $0["status"] == 200 })
      #expect(requests[0]["headers"]?["authorization"] == requests[1]["headers"]?["authorization"])
    }
  }

  @Test("a token by another key is a fault of the configuration")
  func otherKey() async throws {
    try await PushServer.with(.apns) { server in
      try await PushServer.with(.apns) { other in
        let clock = ManualClock()
        try await server.command(["now": .number(Double(clock.now.seconds))])
        let key = try APNSKey(pem: other.pem, keyID: PushServer.keyID, teamID: PushServer.teamID)
        let provider = try provider(server, clock, key: key)
        let failure = await failure(provider, try .sample(at: clock.now))
        #expect(failure == PushFailure(.configuration, "status 403 InvalidProviderToken"))
        await #expect(throws: PushFailure.self) { try await provider.probe() }
        #expect(try await self.provider(server, clock).probe() == "the server accepts the key")
        for status in [400, 404, 410, 302] {
          try await server.command(["strange": .number(Double(status))])
          await #expect(throws: PushFailure.self, "\(status)") { try await self.provider(server, clock).probe() }
        }
      }
    }
  }

  @Test("a server with another certificate gets nothing, and one that hangs is given up")
  func untrusted() async throws {
    try await PushServer.with(.apns) { server in
      try await PushServer.with(.apns) { other in
        let clock = ManualClock()
        let distrusting = try provider(server, clock, authorityFile: other.authorityFile)
        let untrusted = await failure(distrusting, try .sample(at: clock.now))
        #expect(untrusted?.kind == .temporary(after: nil, isOfService: true))
        #expect(try await server.requests().isEmpty)
        try await server.command(["now": .number(Double(clock.now.seconds))])
        try await server.command(["hang": true])
        let patient = try provider(server, clock, exchangeTime: .milliseconds(500))
        let late = await failure(patient, try .sample(at: clock.now))
        #expect(late?.kind == .temporary(after: nil, isOfService: true))
        #expect(try await server.requests(1)[0]["hung"] == true)
      }
    }
  }

  @Test("a template in the device's language gives title and text, and one that becomes too long is not used")
  func templates() async throws {
    let long = "Subject: T\n\n" + String(repeating: "{{domain}}", count: 30)
    let files = [
      ("sign-in.push.de.txt", "Subject: Anmeldung bei {{service}}\n\nBitte prüfen: \"{{domain}}\""),
      ("notice.push.txt", long),
    ]
    let templates = try MessageTemplates(files.map { ($0.0, Array($0.1.utf8)) }, service: "Söhne & Co")
    try await PushServer.with(.apns) { server in
      let clock = ManualClock()
      try await server.command(["now": .number(Double(clock.now.seconds))])
      let provider = try provider(server, clock, templates: templates)
      try await provider.deliver(.sample(language: "de-ch", at: clock.now))
      try await provider.deliver(.sample(language: "fr", at: clock.now))
      try await provider.deliver(.sample(.apns, .notice(sequence: 1), at: clock.now))
      let alerts = try await server.requests(3).map { $0["payload"]?["aps"]?["alert"] }
      #expect(alerts[0] == ["title": "Anmeldung bei Söhne & Co", "body": "Bitte prüfen: \"example.com\""])
      #expect(alerts[1]?["title"] == "Is this you?")
      #expect(alerts[2]?["body"]?.text?.hasPrefix("example.comexample.com") == true)
      let distant = APNSProvider(
        key: try APNSKey(pem: server.pem, keyID: PushServer.keyID, teamID: PushServer.teamID), endpoint: server.url,
        domain: String(repeating: "d", count: 250), templates: templates, authorityFile: server.authorityFile,
        clock: clock.wall, proxies: .none)
      try await distant.deliver(.sample(.apns, .notice(sequence: 1), at: clock.now))
      #expect(try await server.requests(4)[3]["payload"]?["aps"]?["alert"]?["title"] == "Check your account")
    }
  }

  @Test("only a P-256 key as PEM is a key", arguments: ["", "no key", "RSA"])
  func keys(_ text: String) async throws {
    let text = text == "RSA" ? try await PushServer.with(.fcm) { $0.pem } : text
    #expect(throws: PushKeyFault.self) { try APNSKey(pem: text, keyID: "A", teamID: "B") }
  }

  @Test(
    "a key of another curve of the same size is none",
    arguments: [("prime256v1", true), ("secp256k1", false), ("brainpoolP256r1", false), ("secp384r1", false)])
  func curves(_ name: String, _ isKey: Bool) async throws {
    let run = try await ChildProcess.run(
      Places.tool("openssl"), ["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:\(name)"])
    let pem = run.output.joined(separator: "\n")
    #expect(pem.contains("BEGIN PRIVATE KEY"))
    #expect(((try? APNSKey(pem: pem, keyID: "A", teamID: "B")) != nil) == isKey)
  }

  @Test("an app whose name has no bundle id gets nothing", arguments: ["", "com", ".com.example", "TEAM.\u{E4}"])
  func noTopic(_ app: String) async throws {
    try await serving { server, provider, clock in
      let failure = await failure(provider, try .sample(app: app, at: clock.now))
      #expect(failure?.kind == .refused)
      #expect(try await server.requests().isEmpty)
    }
  }

  @Test("through a proxy, a notification is HTTP/2 in a tunnel, and the certificate must have the name of the server")
  func proxy() async throws {
    try await PushServer.with(.apns) { server in
      let relay = try ForwardProxyServer(.serve(port: server.port, document: ""))
      defer { relay.stop() }
      let clock = ManualClock()
      try await server.command(["now": .number(Double(clock.now.seconds))])
      func provider(_ host: String, _ proxy: String) throws -> APNSProvider {
        APNSProvider(
          key: try APNSKey(pem: server.pem, keyID: PushServer.keyID, teamID: PushServer.teamID),
          endpoint: "https://\(host)", domain: "example.com", authorityFile: server.authorityFile, clock: clock.wall,
          proxies: ProxyVariables { ["https_proxy": proxy][$0] })
      }
      let proxied = try provider(PushServer.host, relay.url)
      for _ in 0..<2 { try await proxied.deliver(.sample(at: clock.now)) }
      let requests = try await server.requests(2)
      #expect(requests.allSatisfy { $0["status"] == 200 && $0["connection"] == 1 })
      #expect(relay.heads.count == 1 && relay.heads[0].hasPrefix("CONNECT \(PushServer.host):443 HTTP/1.1\r\n"))
      // The certificate is valid for the address of the proxy, and not for the name of the server.
      let other = await failure(try provider("other.example.test", relay.url), try .sample(at: clock.now))
      #expect(other?.kind == .temporary(after: nil, isOfService: true))
      let address = await failure(try provider("192.0.2.7", relay.url), try .sample(at: clock.now))
      #expect(address?.reason.contains("add the address to NO_PROXY") == true)
      #expect(try await server.requests().count == 2)
      let secure = await failure(
        try provider(PushServer.host, "https://u:hunter2@127.0.0.1:\(relay.port)"), try .sample(at: clock.now))
      #expect(secure?.reason.contains("a proxy without TLS") == true && secure?.reason.contains("hunter2") == false)
    }
  }
}
