import Foundation
import Logging
import MFADomain
import MFAFixtures
import MFAService
import MFAWire
import TestSupport
import Testing

@Suite("REST")
struct TransportTests {
  @Test("T-15 B-025 every path works with and without /api/v1")
  func prefix() async throws {
    try await TestBackend.with { backend async throws in
      let phone = TestPhone()
      #expect(try await backend.send("POST", "/mfa/enroll", phone.enrolment(), as: phone.app).status == 200)
      #expect(try await backend.send("POST", "/auth/initiate", phone.naming, as: phone.app).status == 200)
      #expect(backend.operations.count > 40)
      for operation in backend.operations {
        let path = operation.path.replacing(/{[^}]*}/, with: "1")
        let body: JSONValue? = operation.method == .post ? [:] : nil
        var answers: [Answer] = []
        for prefix in ["", "/api/v1"] {
          answers.append(
            try await backend.send(operation.method.rawValue, prefix + path, body, as: phone.app))
        }
        #expect(answers[0].status == answers[1].status && answers[0]["code"] == answers[1]["code"], "\(operation.name)")
        #expect(answers[0]["code"] != "not_found" && answers[0].status != 405, "\(operation.name)")
      }
    }
  }

  struct BadRequest: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let method: String
    let path: String
    let body: String?
    let status: Int
    let code: String
  }

  static let badRequests = [
    BadRequest(
      testDescription: "no JSON", method: "POST", path: "/auth/initiate", body: "{", status: 400,
      code: "invalid_request"),
    BadRequest(
      testDescription: "no body", method: "POST", path: "/auth/initiate", body: nil, status: 400,
      code: "invalid_request"),
    BadRequest(
      testDescription: "an array", method: "POST", path: "/auth/initiate", body: "[]", status: 400,
      code: "invalid_request"),
    BadRequest(
      testDescription: "bytes that are no UTF-8 escapes", method: "POST", path: "/auth/initiate",
      body: #"{"username":"\uD800","deviceId":"d"}"#, status: 400, code: "invalid_request"),
    BadRequest(
      testDescription: "null for a text", method: "POST", path: "/auth/initiate",
      body: #"{"username":null,"deviceId":"d"}"#, status: 400, code: "invalid_request"),
    BadRequest(
      testDescription: "an unknown path", method: "POST", path: "/auth/nothing", body: "{}", status: 404,
      code: "not_found"),
    BadRequest(
      testDescription: "a path with two slashes", method: "POST", path: "/auth//initiate", body: "{}", status: 404,
      code: "not_found"),
    BadRequest(
      testDescription: "another method", method: "PUT", path: "/auth/initiate", body: "{}", status: 405,
      code: "method_not_allowed"),
    BadRequest(
      testDescription: "deep nesting", method: "POST", path: "/auth/initiate",
      body: String(repeating: "[", count: 20_000), status: 400, code: "invalid_request"),
    BadRequest(
      testDescription: "a body over 64 KiB", method: "POST", path: "/auth/initiate",
      body: "\"" + String(repeating: "x", count: 70_000) + "\"", status: 413, code: "payload_too_large"),
  ]

  @Test("A-171 an invalid request gets its status and never a 500", arguments: badRequests)
  func bad(_ bad: BadRequest) async throws {
    try await TestBackend.with { backend in
      let answer = try await backend.send(
        bad.method, "/api/v1" + bad.path, text: bad.body,
        assertion: try await backend.gate.assertion(for: .genuine()))
      #expect(answer.status == bad.status)
      #expect(answer["code"] == .string(bad.code))
    }
  }

  /// A client that sends its body byte by byte, prints the answer, and continues to send until the connection closes.
  private static let trickle = """
    import socket, sys, time
    s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    s.sendall(sys.argv[2].replace("\\n", "\\r\\n").encode())
    s.settimeout(0.02)
    answer = b""
    while True:
        s.send(b" ")
        try:
            data = s.recv(65536)
        except TimeoutError:
            continue
        if not data:
            break
        answer += data
    print(answer.decode().replace("\\r", ""))
    try:
        while True:
            s.send(b" ")
            time.sleep(0.02)
    except OSError:
        print("closed")
    """

  @Test("A-171 a body that arrives too slowly gets 408, and the connection is closed", .timeLimit(.minutes(1)))
  func trickle() async throws {
    try await TestBackend.with(bodyTime: .milliseconds(300)) { backend in
      let head = """
        POST /api/v1/auth/initiate HTTP/1.1
        Host: localhost
        Content-Type: application/json
        Content-Length: 60000
        X-Attest-Assertion: \(try await backend.gate.assertion(for: .genuine()))


        """
      let run = try await ChildProcess.run(
        Places.tool("python3"), ["-c", Self.trickle, String(backend.port), head])
      #expect(run.output.first == "HTTP/1.1 408 Request Timeout", "\(run.output) \(run.errors)")
      #expect(run.output.contains { $0.lowercased() == "connection: close" })
      #expect(run.output.contains { $0.contains(#""code":"request_timeout""#) })
      #expect(run.output.last == "closed")
      // A request that arrives in one piece is answered as usual, also repeatedly on one connection.
      for _ in 1...3 {
        #expect(
          try await backend.post("/auth/initiate", ["username": "x", "deviceId": "d"], as: .genuine()).status == 200)
      }
    }
  }

  @Test("T-53 X-052 a refusal has the uniform body, and its request id is the gate's")
  func uniformBody() async throws {
    try await TestBackend.with { backend in
      let answer = try await backend.send(
        "POST", "/api/v1/auth/initiate", ["username": "x"], as: .genuine(), headers: [("X-Request-Id", "gate-77")])
      #expect(
        answer.json == [
          "success": false, "error": "deviceId is required", "message": "deviceId is required",
          "code": "invalid_request", "requestId": "gate-77",
        ])
      #expect(answer.headers["x-request-id"] == "gate-77")
    }
  }

  @Test(
    "A-145 a method that a path does not have gets 405, and Allow lists its methods",
    arguments: [
      ("PUT", "/auth/initiate", "POST"), ("POST", "/devices/ada", "GET"), ("HEAD", "/auth/mfa/status", "GET"),
      ("GET", "/auth/mfa/trusted-devices/1", "DELETE"), ("POST", "/openapi.json", "GET"),
      ("GET", "/auth/push/answer", "POST"), ("DELETE", "/auth/webauthn/keys/rename", "POST"),
    ])
  func allow(_ method: String, _ path: String, _ allowed: String) async throws {
    try await TestBackend.with { backend in
      let answer = try await backend.send(method, "/api/v1" + path, as: .genuine())
      #expect(answer.status == 405 && answer.headers["allow"] == allowed, "\(answer.status) \(answer.headers)")
    }
  }

  @Test("A-145 every 401 has a WWW-Authenticate header field, and the OpenAPI document declares it")
  func challenges() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      let otp: JSONValue = ["username": "nobody", "otp": "000000"]
      let bare = try await backend.get("/auth/mfa/status", as: nil)
      #expect(bare.status == 401 && bare.headers["www-authenticate"] == "AppAttest realm=\"mfa-backend\"")
      for answer in [
        try await backend.signIn(phone), try await backend.post("/auth/verify-otp", otp, as: phone.app),
        try await backend.get("/auth/mfa/status", as: phone.app),
      ] {
        #expect(answer.status == 401)
        #expect(answer.headers["www-authenticate"]?.hasPrefix("Bearer ") == true, "\(answer["code"] ?? nil)")
      }
      let document = try await backend.send("GET", "/api/v1/openapi.json", as: nil)
      let paths = try #require(document["paths"]?.members)
      for (path, item) in paths {
        let operations = try #require(item.members, "\(path)")
        for operation in operations.values {
          let field = operation["responses"]?["401"]?["headers"]?["WWW-Authenticate"]
          #expect(field?["required"] == true, "\(path)")
        }
      }
    }
  }

  @Test("A-172 a body of another type gets 415", arguments: ["text/plain", "application/json-patch+json"])
  func mediaType(_ type: String) async throws {
    try await TestBackend.with { backend in
      let answer = try await backend.send(
        "POST", "/api/v1/auth/initiate", text: nil, assertion: try await backend.gate.assertion(for: .genuine()),
        headers: [("Content-Type", type)])
      #expect(answer.status == 415)
    }
  }

  @Test("A-172 unknown fields are ignored")
  func unknownFields() async throws {
    try await TestBackend.with { backend in
      let answer = try await backend.post(
        "/auth/initiate", ["username": "x", "deviceId": "d", "surprise": [1, 2, 3]], as: .genuine())
      #expect(answer.status == 200)
    }
  }

  @Test("A-146 the log has a line with code and reason for every request that is refused before an operation runs")
  func logged() async throws {
    let log = CapturedLog()
    try await TestBackend.with(bodyTime: .milliseconds(300), logger: log.logger) { backend in
      let app = AppInstance.genuine()
      func expect(_ code: String, _ reason: String, _ body: () async throws -> Void) async throws {
        let before = log.lines.count
        try await body()
        let lines = log.lines.dropFirst(before).filter { $0.metadata["code"] == code }
        #expect(lines.map { $0.metadata["reason"] } == [reason], "\(code)")
        #expect(lines.allSatisfy { $0.metadata["request_id"]?.isEmpty == false && $0.level == .info })
      }
      try await expect("not_attested", "not_attested") { _ = try await backend.post("/auth/initiate", [:], as: nil) }
      try await expect("not_found", "unknown_operation") { _ = try await backend.post("/nothing", [:], as: app) }
      try await expect("method_not_allowed", "method_not_allowed") {
        _ = try await backend.get("/auth/initiate", as: app)
      }
      try await expect("method_not_allowed", "method_not_allowed") {
        _ = try await backend.post("/openapi.json", [:], as: app)
      }
      try await expect("payload_too_large", "body_too_large") {
        let body = JSONValue.string(String(repeating: "x", count: 70_000))
        _ = try await backend.post("/auth/initiate", body, as: app)
      }
      try await expect("unsupported_media_type", "not_json") {
        _ = try await backend.send(
          "POST", "/api/v1/auth/initiate", text: nil, assertion: try await backend.gate.assertion(for: app),
          headers: [("Content-Type", "text/plain")])
      }
      try await expect("invalid_request", "missing_username") {
        _ = try await backend.post("/auth/initiate", [:], as: app)
      }
      try await expect("invalid_request", "invalid_username") {
        _ = try await backend.post("/auth/initiate", ["username": "", "deviceId": "a"], as: app)
      }
      try await TestSocket.with(backend, as: app) { socket in
        try await expect("not_found", "unknown_operation") { _ = try await socket.call("nothing") }
        try await expect("invalid_request", "malformed_json") {
          try await socket.send("{")
          _ = try await socket.next { $0["error"] != nil }
        }
        try await expect("session_required", "no_session") {
          _ = try await socket.call("session.attach", ["token": "x"])
        }
      }
    }
  }

  @Test(
    "X-032 the limits treat a /64 of IPv6 as one address, and each IPv4 address as one",
    arguments: [
      ("2001:db8:1:2::1", "2001:db8:1:2:ffff::9", true), ("2001:db8:1:2::1", "2001:db8:1:3::1", false),
      ("192.0.2.1", "192.0.2.2", false), ("192.0.2.1", "::ffff:192.0.2.1", true), ("", "", true),
    ])
  func addresses(_ first: String, _ second: String, _ isOne: Bool) async throws {
    var rateLimits = RateLimits.unlimited
    rateLimits.sensitiveOfAddress = .init(size: 1, perSecond: 0.001)
    var policy = Policy()
    policy.mostMessagesOfAddress = 1
    for (rateLimits, policy) in [(rateLimits, Policy()), (.unlimited, policy)] {
      try await TestBackend.with(rateLimits: rateLimits, policy: policy) { backend in
        var statuses: [Int] = []
        for address in [first, second] {
          var phone = TestPhone(username: "user\(statuses.count)", app: .genuine())
          var app = phone.app
          app.address = address
          phone = TestPhone(username: phone.username, app: app)
          let body: JSONValue = ["username": .string(phone.username), "phoneNumber": .string(phone.number)]
          statuses.append(try await backend.post("/auth/request-otp", body, as: app).status)
        }
        #expect(statuses == [200, isOne ? 429 : 200])
      }
    }
  }

  @Test("X-032 an app instance with too many requests gets 429 with Retry-After, and others do not")
  func pace() async throws {
    var rateLimits = RateLimits()
    rateLimits.standard = .init(size: 3, perSecond: 0.5)
    try await TestBackend.with(rateLimits: rateLimits) { backend in
      let phone = TestPhone()
      for _ in 1...3 { #expect(try await backend.challenge(phone).status == 200) }
      let fourth = try await backend.challenge(phone)
      #expect(fourth.status == 429)
      #expect(fourth["retryAfter"] == 2)
      #expect(fourth.headers["retry-after"] == "2")
      #expect(fourth.headers["ratelimit"] == "\"requests\";r=0;t=2")
      #expect(try await backend.challenge(TestPhone()).status == 200)
      backend.clock.advance(by: .seconds(2))
      #expect(try await backend.challenge(phone).status == 200)
    }
  }
}
