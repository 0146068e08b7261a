import Foundation
import Commands
import Testing

@testable import bearer

@Suite("The visits to the port of a sign-in")
struct LoopbackVisitsTests {
  private static let answer = "/callback?code=c&state=s"

  private func visits(_ redirectURI: String = "http://127.0.0.1:4000/callback") -> LoopbackVisits {
    var visits = LoopbackVisits(redirectURI: redirectURI, secrets: ("ADDRESS", "NAME", "VALUE"))
    visits.begin { $0.query()?.contains("state=s") == true }
    return visits
  }

  private func visit(
    _ target: String, _ user: PeerUser = .own, host: String = "127.0.0.1:4000", cookie: String? = nil
  ) -> LoopbackVisit {
    LoopbackVisit(target: target, hosts: [host], cookies: cookie.map { [$0] } ?? [], user: user)
  }

  private func isAccepted(_ step: LoopbackVisits.Step) -> Bool { if case .accept = step { true } else { false } }

  @Test(
    "A redirect that would cross a network, or reach no program, is refused before the browser opens",
    arguments: [
      "https://127.0.0.1/callback", "http://192.0.2.2:9724/cb", "https://gate.example/cb", "com.example.app:/callback",
      "http://127.0.0.1.example.com/cb", "http://[2001:db8::1]/cb",
    ])
  func elsewhere(_ uri: String) async throws {
    let error = await #expect(throws: (any Error).self) {
      try await LoopbackListener.open(redirectURI: URL(string: uri))
    }
    #expect("\(error.map(String.init(reflecting:)) ?? "")".contains("not http on loopback"))
  }

  @Test func `the short address works once, and the second visit ends the sign-in`() {
    var visits = visits()
    #expect(visits.startAddress == "http://127.0.0.1:4000/start/ADDRESS")
    #expect(visits.step(after: visit("/start/ADDRESS")) == .proceed)
    #expect(visits.step(after: visit("/start/ADDRESS")) == .end(.addressUsed))
    // Nothing is accepted any longer.
    #expect(visits.step(after: visit(Self.answer)) == .refuse(.second))
  }

  @Test func `a browser that looks ahead does not use the short address up`() {
    var visits = visits()
    var ahead = visit("/start/ADDRESS")
    ahead.purposes = ["prefetch"]
    #expect(visits.step(after: ahead) == .refuse(.foreign))
    #expect(visits.step(after: visit("/start/ADDRESS")) == .proceed)
  }

  @Test func `a visit whose connection is closed uses nothing up`() {
    var visits = visits()
    for target in ["/start/ADDRESS", Self.answer] {
      #expect(visits.step(after: visit(target, .closed)) == .refuse(.foreign))
    }
    #expect(visits.step(after: visit("/start/ADDRESS")) == .proceed)
    #expect(isAccepted(visits.step(after: visit(Self.answer))))
  }

  @Test func `another user of the machine is refused everywhere, and uses nothing up`() {
    var visits = visits()
    for target in ["/start/ADDRESS", Self.answer, "/"] {
      #expect(visits.step(after: visit(target, .other(1001))) == .refuse(.otherUser(1001)))
    }
    #expect(visits.step(after: visit("/start/ADDRESS")) == .proceed)
    #expect(
      visits.step(after: visit(Self.answer, .other(1001), cookie: "bearer-NAME=VALUE")) == .refuse(.otherUser(1001)))
    #expect(isAccepted(visits.step(after: visit(Self.answer))))
    #expect(visits.step(after: visit(Self.answer)) == .refuse(.second))
  }

  @Test(
    "Where the kernel names no user, the redirect needs the cookie of the short address",
    arguments: [
      (nil, false), ("bearer-NAME=VALUE", true), ("a=b; bearer-NAME=VALUE; c=d", true), ("bearer-NAME=VALU", false),
      ("bearer-NAME=VALUEX", false), ("xbearer-NAME=VALUE", false), ("bearer-NAME=; VALUE", false),
    ] as [(String?, Bool)])
  func cookie(_ cookie: String?, isEnough: Bool) {
    var visits = visits()
    #expect(visits.step(after: visit("/start/ADDRESS", .unknown)) == .proceed)
    let step = visits.step(after: visit(Self.answer, .unknown, cookie: cookie))
    #expect(isEnough ? isAccepted(step) : step == .end(.browser))
  }

  @Test func `the cookie goes to the redirect alone, and no script reads it`() {
    #expect(
      visits().cookieField == "bearer-NAME=VALUE; Path=/callback; Max-Age=3600; HttpOnly; SameSite=Lax")
    #expect(visits("http://localhost:4000").cookieField.contains("; Path=/; "))
  }

  @Test func `redirects with another state are waited past, however many`() {
    var visits = visits()
    #expect(visits.step(after: visit("/start/ADDRESS")) == .proceed)
    for _ in 0..<10_000 {
      #expect(visits.step(after: visit("/callback?code=c&state=x")) == .refuse(.state))
    }
    #expect(visits.step(after: visit("/callback")) == .refuse(.state))
    #expect(visits.strangeStates == 10_001)
    #expect(isAccepted(visits.step(after: visit(Self.answer))))
  }

  @Test func `what is no navigation of a browser to this port is refused, before and after the start`() {
    var visits = LoopbackVisits(redirectURI: "http://127.0.0.1:4000/callback", secrets: ("ADDRESS", "NAME", "VALUE"))
    #expect(visits.step(after: visit("/start/ADDRESS")) == .refuse(.foreign))
    visits.begin { _ in true }
    var post = visit(Self.answer)
    post.method = "POST"
    var script = visit(Self.answer)
    script.modes = ["no-cors"]
    for foreign in [
      post, script, visit("/"), visit("/start/ADDRESSX"), visit("/start/ADDRESS?x"), visit("/START/ADDRESS"),
      visit("//127.0.0.1:4000/callback"), visit("http://127.0.0.1:4000/callback"),
      visit(Self.answer, host: "localhost:4000"), visit(Self.answer, host: "evil.example"),
    ] {
      #expect(visits.step(after: foreign) == .refuse(.foreign), "\(foreign)")
    }
  }
}
