import ByteCoding
import Locking
import MFADomain
import MFAFixtures
import MFAStore
import NIOCore
import NIOWebSocket
import Testing

@testable import MFAService

@Suite("Sockets")
struct SocketTests {
  @Test("X-002 enrolment, challenge and sign-in work by socket as by REST")
  func signIn() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      try await TestSocket.with(backend, as: phone.app) { socket in
        let enrolled = try await socket.call("mfa.enroll", phone.enrolment())
        #expect(enrolled["result"]?["message"] == "Device enrolled successfully")
        let challenge = try await socket.call("auth.initiate", phone.naming)["result"]
        let answer = try await socket.call(
          "auth.verify-signature",
          [
            "username": .string(phone.username), "deviceId": .string(phone.deviceID),
            "challengeId": challenge?["challengeId"] ?? nil,
            "signature": .string(try phone.sign(challenge?["challenge"]?.text ?? "")),
          ])
        #expect(answer["result"]?["message"] == "Authentication successful")
        let token = answer["result"]?["token"] ?? nil
        #expect(try await socket.call("session.attach", ["token": token])["result"]?["success"] == true)
        let devices = try await socket.call("devices.list", ["username": .string(phone.username)])
        #expect(devices["result"]?["devices"]?.count == 1)
      }
    }
  }

  @Test(
    "T-47 X-002 a client without a subprotocol is served, and one that offers mfa.v1 gets it",
    arguments: ["mfa.v1", nil])
  func subprotocol(_ name: String?) async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      try await TestSocket.with(backend, as: phone.app, subprotocol: name) { socket async throws in
        #expect(socket.subprotocol == name)
        #expect(try await socket.call("auth.initiate", phone.naming)["result"]?["expiresIn"] == 300)
      }
    }
  }

  private static let upgrade = [
    ("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13"),
    ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="), ("X-Request-Id", "gate-7"),
  ]

  @Test("X-001 a socket request without the gate's identity gets 401 with the uniform body, and no upgrade")
  func noIdentity() async throws {
    try await TestBackend.with { backend in
      let answer = try await backend.send("GET", "/", text: nil, assertion: nil, headers: Self.upgrade)
      #expect(answer.status == 401)
      let text: JSONValue = "The gate's identity is missing or not valid"
      #expect(
        answer.json == [
          "success": false, "error": text, "message": text, "code": "not_attested", "requestId": "gate-7",
        ])
      #expect(answer.headers["x-request-id"] == "gate-7")
      #expect(answer.headers["upgrade"] == nil)
    }
  }

  @Test("X-001 a socket request with a used identity gets 401")
  func usedIdentity() async throws {
    try await TestBackend.with { backend in
      let assertion = try await backend.gate.assertion(for: .genuine())
      #expect(
        try await backend.send("GET", "/api/v1/nothing", text: nil, assertion: assertion, headers: Self.upgrade).status
          == 404)
      let again = try await backend.send("GET", "/", text: nil, assertion: assertion, headers: Self.upgrade)
      #expect(again.status == 401)
      #expect(again["code"] == "not_attested")
    }
  }

  @Test("X-052 a field has the same name in a refusal by socket and by REST")
  func fieldNames() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      for (input, text) in [
        (["username": "x"] as JSONValue, "deviceId is required"),
        (["username": 1, "deviceId": "d"], "username has the wrong type"),
      ] {
        let rest = try await backend.send(
          "POST", "/api/v1/auth/initiate", text: input.encoded,
          assertion: try await backend.gate.assertion(for: phone.app))
        #expect(rest["error"] == .string(text))
        try await TestSocket.with(backend, as: phone.app) { socket async throws in
          #expect(try await socket.call("auth.initiate", input)["error"]?["message"] == .string(text))
        }
      }
    }
  }

  @Test("X-052 a refusal by socket contains the body that REST has")
  func refusal() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      try await TestSocket.with(backend, as: phone.app) { socket in
        let answer = try await socket.call(
          "auth.verify-otp", ["username": .string(phone.username), "otp": "000000"])
        #expect(answer["error"]?["code"] == -32000)
        #expect(answer["error"]?["message"] == "Invalid code. Please try again.")
        #expect(answer["error"]?["data"]?["code"] == "invalid_code")
        #expect(answer["error"]?["data"]?["success"] == false)
      }
    }
  }

  @Test("X-003 guesses by REST and by socket are counted together")
  func sharedLimiter() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      let guess: JSONValue = ["username": .string(phone.username), "otp": "000000"]
      for _ in 1...3 { #expect(try await backend.post("/auth/verify-otp", guess, as: phone.app).status == 401) }
      try await TestSocket.with(backend, as: phone.app) { socket async throws in
        for _ in 1...2 {
          #expect(try await socket.call("auth.verify-otp", guess)["error"]?["data"]?["code"] == "invalid_code")
        }
        #expect(try await socket.call("auth.verify-otp", guess)["error"]?["data"]?["code"] == "rate_limited")
      }
      #expect(try await backend.post("/auth/verify-otp", guess, as: phone.app).status == 429)
    }
  }

  struct BadMessage: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let text: String
    let code: JSONValue
    var id: JSONValue = .null
  }

  static let badMessages = [
    BadMessage(testDescription: "no JSON", text: "{", code: -32700),
    BadMessage(testDescription: "a batch", text: "[]", code: -32600),
    BadMessage(testDescription: "no version", text: #"{"id":1,"method":"auth.initiate"}"#, code: -32600),
    BadMessage(testDescription: "a number for a method", text: #"{"jsonrpc":"2.0","id":1,"method":1}"#, code: -32600),
    BadMessage(testDescription: "an object for an id", text: #"{"jsonrpc":"2.0","id":{},"method":"x"}"#, code: -32600),
    BadMessage(
      testDescription: "an unknown method", text: #"{"jsonrpc":"2.0","id":7,"method":"x"}"#, code: -32601, id: 7),
    BadMessage(
      testDescription: "no parameters", text: #"{"jsonrpc":"2.0","id":"a","method":"auth.initiate"}"#, code: -32602,
      id: "a"),
    BadMessage(
      testDescription: "parameters of another type",
      text: #"{"jsonrpc":"2.0","id":"a","method":"auth.initiate","params":[1]}"#, code: -32602, id: "a"),
  ]

  @Test("A-171 an invalid message gets its error, and the socket remains open", arguments: badMessages)
  func badMessage(_ bad: BadMessage) async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      try await TestSocket.with(backend, as: phone.app) { socket in
        try await socket.send(bad.text)
        let answer = try await socket.next { $0["error"] != nil }
        #expect(answer["error"]?["code"] == bad.code)
        #expect(answer["id"] == bad.id)
        #expect(try await socket.call("auth.initiate", phone.naming)["result"] != nil)
      }
    }
  }

  /// The sessions are not checked at an interval, so only the change itself can close a socket.
  private static let neverLooking: SocketLimits = {
    var limits = SocketLimits()
    limits.watchInterval = .seconds(86400)
    return limits
  }()

  @Test("X-042 revoking a session closes its socket with 4403 immediately")
  func revocation() async throws {
    try await TestBackend.with(limits: Self.neverLooking) { backend in
      let phone = TestPhone()
      let token = try await backend.token(phone)
      try await TestSocket.with(backend, as: phone.app) { socket in
        _ = try await socket.call("session.attach", ["token": .string(token)])
        _ = try await backend.post("/auth/token/revoke", [:], as: phone.app, token: token)
        #expect(try await socket.closeCode() == 4403)
      }
    }
  }

  @Test("X-042 the end of a session by another process closes its socket")
  func revocationElsewhere() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      let token = try await backend.token(phone)
      try await TestSocket.with(backend, as: phone.app) { socket in
        _ = try await socket.call("session.attach", ["token": .string(token)])
        let now = backend.clock.now
        try await backend.context.store.write { records in
          let user = try #require(try records.user(named: "testuser"))
          for var session in try records.sessions(of: user.id) {
            session.revokedAt = now
            try records.update(session)
          }
        }
        #expect(try await socket.closeCode() == 4403)
      }
    }
  }

  @Test("X-042 a socket that was opened with a token closes when its session ends")
  func revocationOfHeader() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      let token = try await backend.token(phone)
      try await TestSocket.with(backend, as: phone.app, token: token) { socket in
        #expect(try await socket.call("devices.list", ["username": "testuser"])["result"] != nil)
        _ = try await backend.post("/mfa/unenroll", phone.naming, as: phone.app, token: token)
        #expect(try await socket.closeCode() == 4403)
      }
    }
  }

  /// Requests whose answers together exceed the buffers of client, server and kernel.
  private static let floodSize = 190

  /// Sends requests with large answers. The server may still be reading them when this returns.
  private static func flood(_ socket: TestSocket) async throws {
    let id = String(repeating: "x", count: 60_000)
    for _ in 1...floodSize { try await socket.send(#"{"jsonrpc":"2.0","id":"\#(id)","method":"none"}"#) }
  }

  @Test(
    "X-042 the socket of a revoked session ends in bounded time even if its client does not read",
    .timeLimit(.minutes(1)))
  func revocationUnread() async throws {
    let log = CapturedLog()
    var limits = Self.neverLooking
    limits.largestBacklog = 1 << 30
    limits.closeTime = .milliseconds(100)
    try await TestBackend.with(limits: limits, logger: log.logger) { backend in
      let phone = TestPhone()
      let token = try await backend.token(phone)
      try await TestSocket.with(backend, as: phone.app, token: token, isReading: false) { socket in
        try await Self.flood(socket)
        // With fewer answers than these, all of them and the close frame could fit into the buffers of the kernel.
        try await log.lines(Self.floodSize, saying: "request refused")
        #expect(log.lines(saying: Self.cutOff) == 0)
        _ = try await backend.post("/auth/token/revoke", [:], as: phone.app, token: token)
        try await log.line(saying: Self.cutOff)
      }
    }
  }

  @Test("X-032 the socket of a client that does not read its answers is closed", .timeLimit(.minutes(1)))
  func unread() async throws {
    let log = CapturedLog()
    var limits = Self.neverLooking
    limits.closeTime = .milliseconds(100)
    try await TestBackend.with(limits: limits, logger: log.logger) { backend in
      try await TestSocket.with(backend, as: .genuine(), isReading: false) { socket async throws in
        // The socket may end before everything is sent.
        try? await Self.flood(socket)
        try await log.line(saying: "socket closed: client reads too slowly")
        // The close frame may fit into the buffers of the kernel, or be lost with the rest.
        try? await socket.startReading()
        let code = try? await socket.closeCode()
        #expect(code == nil || code == 4408)
      }
    }
  }

  private static let cutOff = "socket cut off: client does not read"

  @Test("X-032 a socket whose client is too slow to read is closed with 4408", .timeLimit(.minutes(1)))
  func tooSlow() async throws {
    var limits = Self.neverLooking
    limits.largestBacklog = 50_000
    try await TestBackend.with(limits: limits) { backend in
      try await TestSocket.with(backend, as: .genuine()) { socket async throws in
        // One answer that does not fit has the same effect as many that do.
        try await socket.send(#"{"jsonrpc":"2.0","id":"\#(String(repeating: "x", count: 60_000))","method":"none"}"#)
        #expect(try await socket.closeCode() == 4408)
      }
    }
  }

  @Test("A-231 a token on a socket expires as by REST, and a newer one can be attached", arguments: [899, 900])
  func expiry(_ age: Int) async throws {
    try await TestBackend.with(limits: Self.neverLooking) { backend in
      let phone = TestPhone()
      let token = try await backend.token(phone)
      try await TestSocket.with(backend, as: phone.app) { socket async throws in
        _ = try await socket.call("session.attach", ["token": .string(token), "after": 0])
        // The check after the attachment is over before the clock moves. It would close the socket otherwise.
        _ = try await socket.next()
        backend.clock.advance(by: .seconds(age))
        let answer = try await socket.call("devices.list", ["username": "testuser"])
        #expect((answer["result"] != nil) == (age < 900))
        if age == 900 { #expect(answer["error"]?["data"]?["code"] == "session_required") }
        let newer = try await backend.signIn(phone)["token"]?.text ?? ""
        _ = try await socket.call("session.attach", ["token": .string(newer)])
        #expect(try await socket.call("devices.list", ["username": "testuser"])["result"] != nil)
      }
    }
  }

  @Test("X-042 the request that ends its own session is answered before the socket is closed with 4403")
  func lastAnswer() async throws {
    try await TestBackend.with { backend in
      for number in 0..<20 {
        let phone = TestPhone(username: "user\(number)", deviceID: "device-\(number)")
        let token = try await backend.token(phone)
        try await TestSocket.with(backend, as: phone.app) { socket in
          _ = try await socket.call("session.attach", ["token": .string(token)])
          let answer = try await socket.call("mfa.unenroll", phone.naming)
          #expect(answer["result"]?["message"] == "Device unenrolled")
          #expect(try await socket.closeCode() == 4403)
        }
      }
    }
  }

  @Test("A-231 a socket with an expired token and no newer one is closed with 4403")
  func expiryCloses() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      let token = try await backend.token(phone)
      try await TestSocket.with(backend, as: phone.app, token: token) { socket async throws in
        backend.clock.advance(by: .seconds(900))
        #expect(try await socket.closeCode() == 4403)
      }
    }
  }

  @Test("A-083 the user's other devices get a notice of a downgrade, also when they connect later")
  func notices() async throws {
    try await TestBackend.with { backend in
      let (lost, other) = (TestPhone(deviceID: "lost"), TestPhone(deviceID: "other"))
      let token = try await backend.token(lost)
      _ = try await backend.link(other, to: lost, token: token)
      let otherToken = try await backend.signIn(other)["token"]?.text ?? ""
      try await TestSocket.with(backend, as: other.app) { socket in
        _ = try await socket.call("session.attach", ["token": .string(otherToken)])
        _ = try await socket.call("mfa.status")
        _ = try await backend.post("/mfa/downgrade", lost.naming, as: lost.app)
        let notice = try await socket.next()
        #expect(notice["params"]?["kind"] == "methodChanged")
        #expect(notice["params"]?["concerning"] == "lost")
      }
      try await TestSocket.with(backend, as: other.app) { socket in
        _ = try await socket.call("session.attach", ["token": .string(otherToken), "after": 0])
        let kinds = try await [1, 2, 3].asyncMap { _ in try await socket.next()["params"]?["kind"] }
        #expect(kinds == ["deviceEnrolled", "deviceEnrolled", "methodChanged"])
      }
      let listed = try await backend.get("/auth/notices?after=2", as: other.app, token: otherToken)
      #expect(listed["notices"]?.count == 2)
      #expect(listed["notices"]?[0]?["kind"] == "methodChanged")
      // The sessions of the lost key ended with it.
      #expect(listed["notices"]?[1]?["kind"] == "sessionRevoked")
      // A client that knows later numbers has them from before a restore.
      let all = try await backend.get("/auth/notices?after=9000", as: other.app, token: otherToken)
      #expect(all["notices"]?.count == 4)
      try await TestSocket.with(backend, as: other.app) { socket in
        _ = try await socket.call("session.attach", ["token": .string(otherToken), "after": 9000])
        #expect(try await socket.next()["params"]?["kind"] == "deviceEnrolled")
      }
    }
  }

  @Test("A-083 a client that knows later numbers, from before a restore, gets each notice once")
  func noticesAfterRestore() async throws {
    var limits = SocketLimits()
    limits.watchInterval = .milliseconds(10)
    try await TestBackend.with(limits: limits) { backend in
      let (lost, other) = (TestPhone(deviceID: "lost"), TestPhone(deviceID: "other"))
      let token = try await backend.token(lost)
      _ = try await backend.link(other, to: lost, token: token)
      let otherToken = try await backend.signIn(other)["token"]?.text ?? ""
      try await TestSocket.with(backend, as: other.app) { socket in
        _ = try await socket.call("session.attach", ["token": .string(otherToken), "after": 9000])
        for _ in 1...2 { #expect(try await socket.next()["params"]?["kind"] == "deviceEnrolled") }
        // A repeated notice would come before this one.
        _ = try await backend.post("/mfa/downgrade", lost.naming, as: lost.app)
        #expect(try await socket.next()["params"]?["kind"] == "methodChanged")
        #expect(try await socket.next()["params"]?["kind"] == "sessionRevoked")
      }
    }
  }

  @Test("X-042 a session without its second factor receives no notices until it has given the factor")
  func pendingNotices() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      let (_, authenticator) = try await backend.setUp(phone)
      let token = try await backend.pendingToken(phone)
      let news = try await Notices(backend.context).news(
        for: Self.proof(backend), boundTo: .attestedKey(phone.app.keyHash), after: 0)
      #expect(news.isSessionLive && news.notices.isEmpty && news.upTo == 0)
      #expect(try await backend.verifyLogin(authenticator.code(), phone, token: token).status == 200)
      #expect(
        try await Notices(backend.context).news(
          for: Self.proof(backend), boundTo: .attestedKey(phone.app.keyHash), after: 0
        ).notices.count == 2)
    }
  }

  /// Proves the newest session.
  private static func proof(_ backend: TestBackend) async throws -> SessionProof {
    let session = try await backend.context.store.read { records in
      try records.user(named: "testuser").map { try records.sessions(of: $0.id) }?.max { $0.createdAt < $1.createdAt }
    }
    let found = try #require(session)
    return SessionProof(sessionID: found.id, userID: found.userID, expiresAt: found.expiresAt)
  }

  /// A frame that no client may send, and the code of the close that answers it.
  struct ForbiddenFrame: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let frame: WebSocketFrame
    let code: Int

    init(
      _ description: String, _ code: Int, _ opcode: WebSocketOpcode, _ bytes: [UInt8], isMasked: Bool = true,
      reserved: (Bool, Bool, Bool) = (false, false, false)
    ) {
      (testDescription, self.code) = (description, code)
      frame = WebSocketFrame(
        fin: true, rsv1: reserved.0, rsv2: reserved.1, rsv3: reserved.2, opcode: opcode,
        maskKey: isMasked ? .random() : nil, data: ByteBuffer(bytes: bytes))
    }

    static func close(_ description: String, _ code: Int, _ bytes: [UInt8]) -> ForbiddenFrame {
      ForbiddenFrame("a close with \(description)", code, .connectionClose, bytes)
    }
  }

  static let forbiddenFrames =
    [
      ForbiddenFrame("no mask", 1002, .text, Array("{}".utf8), isMasked: false),
      ForbiddenFrame("the first reserved bit", 1002, .text, Array("{}".utf8), reserved: (true, false, false)),
      ForbiddenFrame("the second reserved bit", 1002, .text, Array("{}".utf8), reserved: (false, true, false)),
      ForbiddenFrame("the third reserved bit of a Ping", 1002, .ping, [], reserved: (false, false, true)),
      ForbiddenFrame("a reserved opcode", 1002, WebSocketOpcode(encodedWebSocketOpcode: 3)!, []),
      ForbiddenFrame("a reserved control opcode", 1002, WebSocketOpcode(encodedWebSocketOpcode: 11)!, []),
      ForbiddenFrame("a text that is not UTF-8", 1007, .text, [0x7B, 0xFF, 0x7D]),
      .close("half a code", 1002, [3]), .close("a reason that is not UTF-8", 1007, [0x03, 0xE8, 0xC3]),
    ]
    + [0, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000, 65535].map { code in
      .close("the code \(code)", 1002, [UInt8(code >> 8), UInt8(code & 0xFF)])
    }

  @Test("X-032 a frame that RFC 6455 forbids closes a socket, and has no other effect", arguments: forbiddenFrames)
  func forbiddenFrame(_ forbidden: ForbiddenFrame) async throws {
    try await TestBackend.with { backend in
      try await TestSocket.with(backend, as: TestPhone().app) { socket in
        try await socket.send(forbidden.frame)
        #expect(try await socket.closeCode() == forbidden.code)
      }
    }
  }

  @Test("X-032 a close is answered with its code", arguments: [1000, 1001, 1014, 3000, 4999])
  func closeAnswer(_ code: Int) async throws {
    try await TestBackend.with { backend in
      try await TestSocket.with(backend, as: TestPhone().app) { socket in
        try await socket.send(.connectionClose, [UInt8(code >> 8), UInt8(code & 0xFF)] + Array("bye".utf8))
        #expect(try await socket.closeCode() == code)
      }
    }
  }

  /// A store whose next writes wait for the test.
  private final class WaitingStore: Store {
    private let store: any Store
    private let isHolding = LockedValue(false)
    private let arrivals: AsyncStream<Void>
    private let arrived: AsyncStream<Void>.Continuation
    private let releases: AsyncStream<Void>
    private let released: AsyncStream<Void>.Continuation

    init(_ store: any Store) {
      self.store = store
      (arrivals, arrived) = AsyncStream.makeStream()
      (releases, released) = AsyncStream.makeStream()
    }

    func hold() { isHolding.withLock { $0 = true } }

    /// Waits until a write waits.
    func waitForWrite() async { for await _ in arrivals { return } }

    func release() {
      isHolding.withLock { $0 = false }
      released.finish()
    }

    func read<Value: Sendable>(_ body: @escaping @Sendable (any Records) throws -> Value) async throws -> Value {
      try await store.read(body)
    }

    func write<Value: Sendable>(
      excluding others: WriteExclusion, _ body: @escaping @Sendable (any Records) throws -> Value
    ) async throws -> Value {
      if isHolding.withLock(\.self) {
        arrived.yield()
        for await _ in releases {}
      }
      return try await store.write(excluding: others, body)
    }

    func authenticateHistory(with keys: HistoryKeys) { store.authenticateHistory(with: keys) }
  }

  @Test("X-032 no answer follows the answer to a client's close", .timeLimit(.minutes(1)))
  func nothingAfterClose() async throws {
    let store = WaitingStore(try SQLiteMFAStore.ephemeral())
    defer { store.release() }
    try await TestBackend.with(store: store, limits: Self.neverLooking) { backend in
      let phone = TestPhone()
      try await TestSocket.with(backend, as: phone.app) { socket in
        store.hold()
        let enrolment = phone.enrolment().encoded
        try await socket.send(#"{"jsonrpc":"2.0","id":1,"method":"mfa.enroll","params":\#(enrolment)}"#)
        await store.waitForWrite()
        try await socket.send(.connectionClose, [0x03, 0xE8])
        #expect(try await socket.closeCode() == 1000)
        store.release()
        // The server closes the connection after the request.
        await #expect(throws: (any Error).self) { try await socket.next { _ in true } }
      }
      // The request itself had its effect.
      #expect(try await backend.signIn(phone).status == 200)
    }
  }

  @Test("X-032 frames after the last one are dropped, and are not counted")
  func lastFrame() async throws {
    func frame(_ size: Int) -> WebSocketFrame {
      WebSocketFrame(fin: true, opcode: .text, data: ByteBuffer(repeating: 0x78, count: size))
    }
    let queue = OutboundQueue(limit: 1000)
    try queue.add(frame(1))
    try queue.add(frame(2), isLast: true)
    for _ in 1...100 { try queue.add(frame(900)) }
    #expect(!queue.finish())
    let (writer, sink) = NIOAsyncChannelOutboundWriter<WebSocketFrame>.makeTestingWriter()
    try await queue.write(to: writer)
    writer.finish()
    var sizes: [Int] = []
    for await frame in sink { sizes.append(frame.length) }
    #expect(sizes == [1, 2])
    let other = OutboundQueue(limit: 1000)
    #expect(throws: OutboundQueue.Full.self) { try other.add(frame(1000)) }
    #expect(other.finish())
  }

  @Test("X-032 forbidden frames close a socket with their close codes")
  func closeCodes() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      try await TestSocket.with(backend, as: phone.app) { socket in
        try await socket.send(.binary, [1, 2, 3])
        #expect(try await socket.closeCode() == 4400)
      }
      try await TestSocket.with(backend, as: phone.app) { socket in
        try await socket.send(.text, fin: false, Array(repeating: 0x78, count: 40_000))
        try await socket.send(.continuation, Array(repeating: 0x78, count: 40_000))
        #expect(try await socket.closeCode() == 4413)
      }
      for size in [1 << 16 + 1, 1 << 20] {
        try await TestSocket.with(backend, as: phone.app) { socket async throws in
          // The server may close before everything is written.
          try? await socket.send(.text, Array(repeating: 0x78, count: size))
          #expect(try await socket.closeCode() == 4413, "\(size)")
        }
      }
      try await TestSocket.with(backend, as: phone.app) { socket async throws in
        for _ in 1...2 { try? await socket.send(.text, fin: false, [0x78]) }
        #expect(try await socket.closeCode() == 1002)
      }
      try await TestSocket.with(backend, as: phone.app) { socket in
        try await socket.send(.text, fin: false, [0x78])
        for _ in 1...64 { try? await socket.send(.continuation, fin: false, [0x78]) }
        #expect(try await socket.closeCode() == 4413)
      }
      try await TestSocket.with(backend, as: phone.app) { socket in
        for _ in 1...201 { try await socket.send(.pong) }
        #expect(try await socket.closeCode() == 4429)
      }
    }
  }

  @Test("X-032 a message of 64 KiB is read in one frame or in several, also with empty frames")
  func largestMessage() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      try await TestSocket.with(backend, as: phone.app) { socket in
        let head = #"{"jsonrpc":"2.0","id":"1","method":"none","params":""#
        let text = head + String(repeating: "x", count: (1 << 16) - head.utf8.count - 2) + "\"}"
        let bytes = Array(text.utf8)
        #expect(bytes.count == 1 << 16)
        try await socket.send(text)
        #expect(try await socket.next { $0["id"] == "1" }["error"]?["code"] == -32601)
        try await socket.send(.text, fin: false, Array(bytes[..<30_000]))
        try await socket.send(.continuation, fin: false, [])
        try await socket.send(.continuation, Array(bytes[30_000...]))
        #expect(try await socket.next { $0["id"] == "1" }["error"]?["code"] == -32601)
      }
    }
  }

  @Test("X-042 only the session's own app instance can attach it")
  func foreignToken() async throws {
    try await TestBackend.with { backend in
      let token = try await backend.token(TestPhone())
      try await TestSocket.with(backend, as: .genuine()) { socket in
        let answer = try await socket.call("session.attach", ["token": .string(token)])
        #expect(answer["error"]?["data"]?["code"] == "device_mismatch")
      }
      // The head of the request that opens the socket cannot attach it either.
      await #expect(throws: TestSocket.NotUpgraded.self) {
        try await TestSocket.with(backend, as: .genuine(), token: token) { _ in }
      }
      let entries = try await Administration(backend.context).history(
        of: Username("testuser"), before: nil, atMost: 100, by: .command(name: "test"))
      #expect(entries.filter { $0.event == "binding.refused" && $0.detail == "operation=session.attach" }.count == 2)
    }
  }

  @Test("X-042 only the session's own app instance receives notices")
  func foreignNews() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      _ = try await backend.token(phone)
      let (proof, notices) = (try await Self.proof(backend), Notices(backend.context))
      let own = try await notices.news(for: proof, boundTo: .attestedKey(phone.app.keyHash), after: 0)
      #expect(own.isSessionLive && own.notices.count == 1)
      let foreign = try await notices.news(for: proof, boundTo: .attestedKey("another"), after: 0)
      #expect(!foreign.isSessionLive && foreign.notices.isEmpty && foreign.pushes.isEmpty)
    }
  }
}
