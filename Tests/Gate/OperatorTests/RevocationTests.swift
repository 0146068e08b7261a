import AppAttest
import AttestGate
import GateProcesses
import GateService
import SimulatedDevice
import TestSupport
import Testing
import Transport
import TransportEngine

@Suite("Keys and sessions of a running gate", .serialized, .timeLimit(.minutes(5)))
struct RevocationTests {
  /// A gate closes the sockets of a changed key within two seconds. A busy machine may need longer; a gate that misses
  /// the change closes nothing.
  private static let closingTime = Duration.seconds(60)

  /// The path of a command to the gate.
  enum Way: String, CaseIterable, CustomTestStringConvertible {
    case adminSocket = "the admin socket"
    case store = "the store"
    var testDescription: String { rawValue }

    func options(_ bench: AdminBench) -> [String] {
      switch self {
      case .adminSocket: bench.config
      case .store: ["--store", "sqlite://\(bench.gate.folder.path)/state.db"]
      }
    }
  }

  @Test(
    "A key that is revoked on either path loses its open sessions with 3003; other sessions stay",
    arguments: Way.allCases)
  func revoke(over way: Way) async throws {
    try await AdminBench.serving { bench in
      let (phone, hash) = try await bench.registeredPhone()
      let (other, _) = try await bench.registeredPhone()
      let socket = try await bench.visitor.open(as: phone, counter: 1)
      let untouched = try await bench.visitor.open(as: other, counter: 1)
      let revoked = try await sallyport(["keys", "revoke", String(hash.prefix(16)), "--json"] + way.options(bench))
      // Measured from the end of the command, since the start of a program can take any time.
      let start = ContinuousClock.now
      #expect(revoked.status == 0)
      #expect(try revoked.json(KeyDescription.self).state == "revoked")
      let (code, after) = try await socket.ending(since: start)
      #expect(code == 3003)
      #expect(after < Self.closingTime)
      #expect(try await untouched.exchange(.text("still here")) == .text("still here"))
      let credentials = try phone.credentials(over: await bench.visitor.challenge(), counter: 2)
      #expect(try await bench.visitor.refusal(of: credentials) == "key_revoked")

      let restored = try await sallyport(["keys", "restore", phone.keyID] + way.options(bench))
      #expect(restored.output == ["\(hash)\tactive"])
      #expect(try await bench.visitor.open(as: phone, counter: 3).exchange(.text("back")) == .text("back"))
    }
  }

  @Test("A removed key loses its sessions, and its device is unknown")
  func remove() async throws {
    try await AdminBench.serving { bench in
      let (phone, hash) = try await bench.registeredPhone()
      let socket = try await bench.visitor.open(as: phone, counter: 1)
      // One key may have two names.
      let removal = try await sallyport(["keys", "rm", hash, String(hash.prefix(8)), "--yes"] + bench.config)
      #expect(removal.output == ["\(hash)\tremoved"])
      #expect(removal.status == 0)
      let start = ContinuousClock.now
      let (code, after) = try await socket.ending(since: start)
      #expect(code == 3003)
      #expect(after < Self.closingTime)
      let credentials = try phone.credentials(over: await bench.visitor.challenge(), counter: 2)
      #expect(try await bench.visitor.refusal(of: credentials) == "key_refused")
    }
  }

  @Test("Sessions are listed, also by key; a session is closed with 1001 and its device can connect again")
  func sessions() async throws {
    try await AdminBench.serving { bench in
      let (phone, hash) = try await bench.registeredPhone()
      let (other, _) = try await bench.registeredPhone()
      let socket = try await bench.visitor.open(as: phone, counter: 1)
      let untouched = try await bench.visitor.open(as: other, counter: 1)
      #expect(try await sallyport(["sessions", "list"] + bench.config).output.count == 2)
      let listed = try await sallyport(["sessions", "list", "--json", "--key", hash] + bench.config)
      #expect(listed.output.count == 1)
      let session = try listed.json(SessionDescription.self)
      #expect(session.key == hash)
      #expect(session.id == socket.response.headers.first("X-Request-Id"))
      #expect(session.route == "/" && session.method == "app-attest" && session.address.hasPrefix("127.0.0.1:"))
      #expect(session.app == "\(GatePlan.teamID).\(GatePlan.bundleID)")
      #expect(try await sallyport(["keys", "show", hash] + bench.config).output.last == "open sessions   1")

      let start = ContinuousClock.now
      // Six characters of an id name one of two sessions, with a probability of 2 to the 24th.
      // A session that is not open does not keep the next one open.
      let closing = ["sessions", "close", String(repeating: "0", count: 32), String(session.id.prefix(6))]
      let closed = try await sallyport(closing + bench.config)
      #expect(closed.output == ["\(session.id)\tclosed"])
      #expect(closed.status == 66 && closed.isFailure)
      #expect(try await socket.ending(since: start).code == 1001)
      #expect(try await untouched.exchange(.text("still here")) == .text("still here"))
      #expect(try await bench.visitor.open(as: phone, counter: 2).exchange(.text("back")) == .text("back"))
      // The session is removed before its client receives the Close.
      let again = try await sallyport(["sessions", "close", String(repeating: "0", count: 32)] + bench.config)
      #expect(again.status == 66)
      for name in ["01234", String(repeating: "0", count: 33), "0123456g"] {
        #expect(try await sallyport(["sessions", "close", name] + bench.config).status == 64, "\(name)")
      }
      #expect(again.isFailure)
    }
  }

  @Test("Two names of one session are one session, which is closed")
  func twoNames() async throws {
    try await AdminBench.serving { bench in
      let (phone, _) = try await bench.registeredPhone()
      let socket = try await bench.visitor.open(as: phone, counter: 1)
      let session = try await sallyport(["sessions", "list", "--json"] + bench.config).json(SessionDescription.self)
      let names = [session.id, String(session.id.prefix(8)), session.id]
      let start = ContinuousClock.now
      let closed = try await sallyport(["sessions", "close"] + names + bench.config)
      #expect(closed.output == ["\(session.id)\tclosed"] && closed.status == 0, "\(closed)")
      #expect(try await socket.ending(since: start).code == 1001)
    }
  }

  @Test("Pages list each session once, and the last page has no next")
  func pages() async throws {
    try await AdminBench.serving { bench in
      let (phone, _) = try await bench.registeredPhone()
      var sockets: [ClientWebSocket] = []
      for counter in UInt32(1)...5 { sockets.append(try await bench.visitor.open(as: phone, counter: counter)) }
      var ids: [String] = []
      var query = "?limit=2"
      while true {
        let body = try await bench.ask("GET", "/v1/sessions" + query).body
        let page = try #require(AdminJSON.value(SessionListing.self, in: body))
        ids += page.sessions.map(\.id)
        guard let next = page.next else { break }
        query = "?limit=2&after=\(next)"
      }
      #expect(ids == sockets.compactMap { $0.response.headers.first("X-Request-Id") })
    }
  }
}
