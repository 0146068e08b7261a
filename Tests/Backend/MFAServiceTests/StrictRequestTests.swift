import ByteCoding
import Foundation
import Logging
import MFADomain
import MFAFixtures
@testable import MFAService
import TestSupport
import Testing

@Suite("Requests that a lenient parser would accept", .timeLimit(.minutes(2)))
struct StrictRequestTests {
  /// A client that sends `heads` one after the other, prints the answers, and finally the time until the server closed
  /// the connection.
  private static let client = """
    import socket, sys, time
    s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    start = time.monotonic()
    for head in sys.argv[2:]:
        s.sendall(head.encode("latin-1"))
        time.sleep(0.3)
    s.settimeout(20)
    answer = b""
    try:
        while True:
            data = s.recv(65536)
            if not data:
                break
            answer += data
        end = "closed within %d s" % (time.monotonic() - start + 1)
    except TimeoutError:
        end = "open"
    print(answer.decode(errors="replace").replace("\\r", ""))
    print(end)
    """

  private static func send(_ heads: [String], to port: Int) async throws -> [String] {
    let run = try await ChildProcess.run(Places.tool("python3"), ["-c", client, String(port)] + heads)
    #expect(run.exit == .code(0), "\(run.errors)")
    return run.output
  }

  static let malformed = [
    "GARBAGE\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "\u{16}\u{03}\u{01}\u{02}\u{00}\u{01}\u{00}",
    "GET / HTTP/1.1\r\nHost: x\r\nBad Name: y\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: x\r\nX: " + String(repeating: "y", count: 90_000) + "\r\n\r\n",
  ]

  @Test("a malformed head is refused once, and its connection is closed immediately", arguments: malformed)
  func malformedHead(_ head: String) async throws {
    try await TestBackend.with { backend in
      let lines = try await Self.send([head], to: backend.port)
      #expect(lines.filter { $0.hasPrefix("HTTP/1.1 ") } == ["HTTP/1.1 400 Bad Request"], "\(lines)")
      #expect(["closed within 1 s", "closed within 2 s", "closed within 3 s"].contains(lines.last), "\(lines)")
    }
  }

  @Test("a malformed head after a valid request is refused once, and the connection is closed")
  func malformedSecondHead() async throws {
    try await TestBackend.with { backend in
      let good = "GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n"
      let lines = try await Self.send([good, "GARBAGE\r\n\r\n"], to: backend.port)
      let text = lines.joined(separator: "\n")
      #expect(text.ranges(of: "HTTP/1.1 ").count == 2 && text.ranges(of: "HTTP/1.1 400 Bad Request").count == 1)
      #expect(lines.last?.hasPrefix("closed within") == true)
    }
  }

  private static let status = BackendStatus(
    version: "1", ready: false, checks: [], uptimeSeconds: 1, address: "127.0.0.1:1", sockets: 0, delivery: [],
    store: "memory", configuration: BackendStatus.Configuration(file: nil, loadedAt: "", fault: nil))

  @Test("the metrics server closes on a malformed head, answers HEAD without a body, and refuses other methods")
  func metrics() async throws {
    let (ports, found) = AsyncStream<Int>.makeStream()
    let log = CapturedLog()
    let operations = BackendOperations(
      checks: { [ReadinessCheck("store", ready: false, "failing")] }, status: { Self.status },
      metrics: { Array("a 1\n".utf8) }, reload: { .done(needingRestart: []) }, drain: {})
    let server = MetricsServer(
      AdminRouter(operations, surface: .monitoring), address: .tcp(host: "127.0.0.1", port: 0), logger: log.logger)
    let running = Task {
      defer { found.finish() }
      try await server.run()
    }
    defer { running.cancel() }
    try await log.line(saying: "metrics listening")
    let port = try #require(
      log.lines.first { $0.message == "metrics listening" }?.metadata["port"].flatMap { Int($0) })
    _ = ports
    let refused = try await Self.send(["GARBAGE\r\n\r\n"], to: port)
    #expect(refused.filter { $0.hasPrefix("HTTP/1.1 ") } == ["HTTP/1.1 400 Bad Request"], "\(refused)")
    #expect(refused.last?.hasPrefix("closed within") == true, "\(refused)")
    let close = " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    let get = try await Self.send(["GET /metrics" + close], to: port)
    #expect(get.first == "HTTP/1.1 200 OK" && get.contains("a 1"), "\(get)")
    let head = try await Self.send(["HEAD /metrics" + close], to: port)
    #expect(head.first == "HTTP/1.1 200 OK" && !head.contains("a 1"), "\(head)")
    let post = try await Self.send(["POST /metrics" + close], to: port)
    #expect(post.first == "HTTP/1.1 405 Method Not Allowed", "\(post)")
    let ready = try await Self.send(["GET /readyz?verbose" + close], to: port)
    #expect(ready.first == "HTTP/1.1 503 Service Unavailable" && ready.contains("[-] store: failing"), "\(ready)")
    for (query, isNamed) in [
      ("exclude=store", false), ("verbose&exclude=store", false), ("exclude=%73tore&exclude=gate+keys", true),
    ] {
      let excluded = try await Self.send(["GET /readyz?\(query)" + close], to: port)
      #expect(excluded.first == "HTTP/1.1 200 OK" && excluded.contains("ready"), "\(excluded)")
      #expect(excluded.contains("[+] store: excluded: failing") == query.hasPrefix("verbose"), "\(excluded)")
      let warning = "warn: some health checks cannot be excluded: no matches for \"gate+keys\""
      #expect(excluded.contains(warning) == isNamed, "\(excluded)")
    }
    for query in ["exclude", "exclude=", "exclude=STORE", "exclude=store,listener", "include=store", "exclude=%zz"] {
      let counted = try await Self.send(["GET /readyz?\(query)" + close], to: port)
      #expect(counted.first == "HTTP/1.1 503 Service Unavailable", "\(query): \(counted)")
    }
    let alive = try await Self.send(["GET /livez" + close], to: port)
    #expect(alive.first == "HTTP/1.1 200 OK" && alive.contains("ok"), "\(alive)")
    for path in ["/v1/status", "/status", "/v1/reload", "/v1/drain"] {
      #expect(try await Self.send(["GET " + path + close], to: port).first == "HTTP/1.1 404 Not Found", "\(path)")
    }
    let other = try await Self.send(["GET /" + close], to: port)
    #expect(other.first == "HTTP/1.1 404 Not Found", "\(other)")
  }

  @Test(
    "HEAD is answered without a body, also if it requests an upgrade",
    arguments: ["/api/v1/auth/mfa/status", "/openapi.json", "/nothing", "/"])
  func head(_ path: String) async throws {
    try await TestBackend.with { backend in
      let upgrade =
        "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
        + "Sec-WebSocket-Version: 13\r\n"
      for fields in path == "/" ? [upgrade] : ["Connection: close\r\n"] {
        let identity = try await backend.gate.assertion(for: .genuine())
        let lines = try await Self.send(
          ["HEAD \(path) HTTP/1.1\r\nHost: x\r\nX-Attest-Assertion: \(identity)\r\n\(fields)\r\n"],
          to: backend.port)
        #expect(lines.first?.hasPrefix(path == "/nothing" ? "HTTP/1.1 404 " : "HTTP/1.1 405 ") == true, "\(lines)")
        #expect(!lines.contains { $0.contains("{") }, "\(lines)")
        #expect(lines.contains { $0.lowercased().hasPrefix("content-length: ") && !$0.hasSuffix(" 0") }, "\(lines)")
      }
    }
  }

  private static let version = "Sec-WebSocket-Version: 13\r\n"
  private static let key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
  private static let upgrade = "Connection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n"

  @Test(
    "a socket's opening handshake with a wrong version or key is refused, and every other upgrade is ignored",
    arguments: [
      ("1.1", upgrade + version + key, 101, nil), ("1.1", upgrade + key, 400, "13"),
      ("1.1", upgrade + "Sec-WebSocket-Version: 8\r\n" + key, 400, "13"),
      ("1.1", upgrade + version + version + key, 400, "13"), ("1.1", upgrade + version, 400, nil),
      ("1.1", upgrade + version + "Sec-WebSocket-Key: zz\r\n", 400, nil),
      ("1.1", upgrade + version + key + key, 400, nil),
      ("1.1", "Connection: Upgrade\r\nUpgrade: h2c, websocket\r\n" + version + key, 101, nil),
      ("1.1", "Connection: Upgrade\r\nUpgrade: h2c\r\nConnection: close\r\n", 404, nil),
      ("1.1", "Connection: close\r\nUpgrade: websocket\r\n" + version + key, 404, nil),
      ("1.0", upgrade.replacing("keep-alive, ", with: "") + version + key, 404, nil),
    ] as [(String, String, Int, String?)])
  func handshake(_ http: String, _ fields: String, _ status: Int, _ named: String?) async throws {
    try await TestBackend.with { backend in
      let identity = try await backend.gate.assertion(for: .genuine())
      let head = "GET / HTTP/\(http)\r\nHost: x\r\nX-Attest-Assertion: \(identity)\r\n\(fields)\r\n"
      // An empty Close frame, which ends a socket.
      let close = status == 101 ? ["\u{88}\u{80}mask"] : []
      let lines = try await Self.send([head] + close, to: backend.port)
      #expect(lines.first?.contains(" \(status) ") == true, "\(lines)")
      #expect(lines.first { $0.lowercased().hasPrefix("sec-websocket-version: ") }?.suffix(2) == named.map { $0[...] })
      #expect(status != 400 || lines.contains { $0.contains("\"code\":\"invalid_request\"") }, "\(lines)")
    }
  }

  static let ambiguous = [
    #"{"username":"x","deviceId":"d",}"#, #"{"username":"x","deviceId":"d","username":"y"}"#,
    #"{"username":"x","deviceId":"d","user\u006Eame":"y"}"#, #"{"username":"x","deviceId":"d","more":[1,]}"#,
    #"{"username":"x","deviceId":"d","more":{"a":1,"a":1}}"#, "\u{FEFF}{\"username\":\"x\",\"deviceId\":\"d\"}",
    #"{"username":"x","deviceId":"d","more":01}"#,
  ]

  @Test("a body that two parsers may read in two ways is refused", arguments: ambiguous)
  func ambiguousBody(_ body: String) async throws {
    try await TestBackend.with { backend in
      let app = AppInstance.genuine()
      let answer = try await backend.send(
        "POST", "/api/v1/auth/initiate", text: body, assertion: try await backend.gate.assertion(for: app))
      #expect(answer.status == 400 && answer["code"] == "invalid_request", "\(answer.status)")
      try await TestSocket.with(backend, as: app) { socket in
        try await socket.send(#"{"jsonrpc":"2.0","id":1,"method":"auth.initiate","params":\#(body)}"#)
        let refused = try await socket.next { $0["error"] != nil }
        #expect(refused["error"]?["code"] == -32700, "\(refused.encoded)")
      }
    }
  }

  @Test("a body in UTF-16 or UTF-32 is refused", arguments: [String.Encoding.utf16LittleEndian, .utf16, .utf32])
  func otherEncodings(_ encoding: String.Encoding) async throws {
    let text = #"{"username":"x","deviceId":"d"}"#
    let bytes = Array(try #require(text.data(using: encoding)))
    #expect(JSONGrammar.accepts(Array(text.utf8)) && !JSONGrammar.accepts(bytes))
    #expect(throws: OperationInputError.malformedJSON) {
      let _: [String: String] = try WireCoding.decode(bytes)
    }
  }

  @Test("a value that is twice in the query, or also in the path, is refused")
  func repeatedQuery() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone(username: "root")
      let (token, _) = try await backend.setUp(phone)
      for query in ["?after=a&after=b", "?username=eve"] {
        let path = query.hasPrefix("?username") ? "/devices/root" : "/admin/users"
        let answer = try await backend.get(path + query, as: phone.app, token: token)
        #expect(answer.status == 400 && answer["code"] == "invalid_request", "\(query) \(answer.status)")
      }
    }
  }

  @Test("an identity of the gate has one encoding: padding, set padding bits and additional parts are refused")
  func spelledIdentity() async throws {
    try await TestBackend.with { backend in
      for spell in Self.spellings {
        let identity = try await backend.gate.assertion(for: .genuine())
        let answer = try await backend.send(
          "POST", "/api/v1/auth/initiate", text: #"{"username":"x","deviceId":"d"}"#, assertion: try spell(identity))
        #expect(answer.status == 401 && answer["code"] == "not_attested", "\(answer.status)")
      }
    }
  }

  @Test("an access token and a refresh token have one encoding")
  func spelledTokens() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      try await backend.enrol(phone)
      let session = try await backend.signIn(phone)
      let token = try #require(session["token"]?.text)
      #expect(try await backend.get("/devices/\(phone.username)", as: phone.app, token: token).status == 200)
      for spell in Self.spellings {
        let answer = try await backend.get("/devices/\(phone.username)", as: phone.app, token: try spell(token))
        #expect(answer.status == 401 && answer["code"] == "session_required")
      }
      let refresh = try #require((session["refreshToken"] ?? session["refresh_token"])?.text)
      let parts = refresh.split(separator: ".")
      for spelled in [
        "\(parts[0].uppercased()).\(parts[1]).\(parts[2])", "\(parts[0]).0\(parts[1]).\(parts[2])", refresh + "=",
      ] {
        let answer = try await backend.post(
          "/auth/token/refresh", ["refreshToken": .string(spelled)], as: phone.app)
        #expect(answer.status == 401, "\(spelled.prefix(40))")
      }
      #expect(
        try await backend.post("/auth/token/refresh", ["refreshToken": .string(refresh)], as: phone.app).status == 200)
    }
  }

  /// Changes of a token that a lenient decoder would ignore.
  private static let spellings: [@Sendable (String) throws -> String] = [
    { $0 + "=" }, { $0 + "==" }, { $0 + "." },
    // 64 bytes leave four bits of the last character unused.
    { token in
      let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
      let place = try #require(token.last.flatMap { alphabet.firstIndex(of: $0) })
      return token.dropLast() + String(alphabet[place | 1])
    },
  ]
}
