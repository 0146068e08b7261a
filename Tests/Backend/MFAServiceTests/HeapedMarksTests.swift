import Foundation
import MFADomain
import MFAFixtures
import Testing

/// Swift puts the combining marks of a character in order whenever it compares or hashes a text, which takes time by
/// the square of their number.
@Suite("Combining marks in a row", .timeLimit(.minutes(2)))
struct HeapedMarksTests {
  /// `count` marks of two classes in turn, in the order that takes longest to mend.
  private static func marks(_ count: Int) -> String {
    String(repeating: "\u{301}", count: count / 2) + String(repeating: "\u{323}", count: count - count / 2)
  }

  @Test("more than 30 marks in a row are refused in every text of a request")
  func refused() async throws {
    try await TestBackend.with { backend async throws in
      try await AppClient.with(backend, .rest, as: .genuine()) { client async throws in
        let phone = TestPhone()
        for (field, value) in [
          ("username", "a"), ("method", "a"), ("deviceId", "a"), ("linkCode", "a"), ("authMethod", "a"),
          ("unknown", "a"),
        ] {
          let text = JSONValue.string(value + Self.marks(20_000))
          let answer = try await client.call("mfa.enroll", phone.enrolment().with([field: text]))
          #expect(
            answer["error"] == "A text has more than 30 combining marks in a row"
              && answer["code"] == "invalid_request", "\(field): \(answer)")
        }
        // The name of a member as well.
        let named = try await client.call("mfa.enroll", phone.enrolment().with(["a" + Self.marks(31): 1]))
        #expect(named["error"] == "A text has more than 30 combining marks in a row", "\(named)")
        // 30 are a matter of each field's own rule.
        let short = JSONValue.string("a" + Self.marks(30))
        let few = try await client.call("mfa.enroll", phone.enrolment().with(["deviceId": short]))
        #expect(few["error"] == "deviceId has 1 to 128 printable ASCII characters and no spaces", "\(few)")
        // A decoder could read two names of members as one if they were not ASCII.
        let unused = try await client.call("mfa.enroll", phone.enrolment().with(["a" + Self.marks(30): 1]))
        #expect(unused["success"] != true, "\(unused)")
      }
    }
  }

  @Test(
    "a message of a socket with more marks is refused with its id if that is readable, and a long method is unknown")
  func refusedMessages() async throws {
    try await TestBackend.with { backend in
      try await TestSocket.with(backend, as: .genuine()) { socket in
        let text = "a" + Self.marks(20_000)
        for (message, id) in [
          ("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\(text)\"}", 1),
          (
            "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"auth.initiate\",\"params\":{\"username\":\"\(text)\"}}", 2
          ), ("{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"a\",\"params\":{\"y\":\"\(text)\"}}", "x"),
          ("{\"jsonrpc\":\"2.0\",\"id\":\"\(text)\",\"method\":\"auth.initiate\"}", .null),
          ("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"auth.initiate\",\"params\":{\"\(text)\":1}}", .null),
        ] as [(String, JSONValue)] {
          try await socket.send(message)
          let error = try await socket.next { $0["id"] == id }["error"]
          #expect(error?["code"] == -32602, "\(error ?? .null)")
          #expect(error?["data"]?["error"] == "A text has more than 30 combining marks in a row", "\(error ?? .null)")
        }
        let unknown = try await socket.call(String(repeating: "a", count: 65))
        #expect(unknown["error"]?["code"] == -32601, "\(unknown)")
      }
    }
  }

  @Test("marks in escapes, signs of Tibetan that are two marks, and malformed texts")
  func spellings() async throws {
    try await TestBackend.with { backend async throws in
      func error(_ text: String) async throws -> JSONValue? {
        let app = AppInstance.genuine()
        let answer = try await backend.send(
          "POST", "/api/v1/mfa/enroll", text: text, assertion: backend.gate.assertion(for: app))
        #expect(answer.status == 400)
        return answer["error"]
      }
      let refusal: JSONValue = "A text has more than 30 combining marks in a row"
      #expect(try await error("{\"x\":\"" + String(repeating: #"\u0301"#, count: 31) + "\"}") == refusal)
      #expect(try await error("{\"x\":\"" + String(repeating: #"\ud834\udd65"#, count: 31) + "\"}") == refusal)
      #expect(try await error("{\"x\":\"" + String(repeating: "\u{1D165}", count: 31) + "\"}") == refusal)
      #expect(try await error("{\"x\":\"" + String(repeating: "\u{F73}", count: 16) + "\"}") == refusal)
      #expect(try await error("{\"x\":\"" + String(repeating: #"\u0301"#, count: 30) + "\"}") == "username is required")
      #expect(try await error("{\"x\":\"" + String(repeating: "\u{F73}", count: 15) + "\"}") == "username is required")
      for malformed in [#"{"x":"\u030"#, #"{"x":"\ud834\u"#, #"{"x":"\"#, "{\"x\":\"\u{301}", #"{"x":"\ud834"#] {
        #expect(try await error(malformed) != refusal, "\(malformed)")
      }
    }
  }

  @Test("paths, queries and header fields with marks are compared as bytes, and a long target reaches no operation")
  func requestHeads() async throws {
    try await TestBackend.with { backend async throws in
      let phone = TestPhone()
      let token = try await backend.token(phone)
      let marks = String(repeating: "%CC%81", count: 800)
      #expect(try await backend.get("/device/\(marks)/status", as: phone.app).status == 400)
      #expect(try await backend.get("/\(marks)/a/status", as: phone.app).status == 404)
      #expect(try await backend.get("/auth/notices?\(marks)=1", as: phone.app, token: token).status == 200)
      #expect(try await backend.get("/device/\(marks)\(marks)/status", as: phone.app).status == 404)
      // KELVIN SIGN is the letter K in another spelling, for Swift's comparison.
      #expect(try await backend.get("/auth/mfa/status", as: phone.app, token: token).status == 200)
      for (type, status) in [
        ("application/json", 200), ("Application/JSON ; charset=utf-8", 200), ("application/json\u{301}", 415),
        ("application/jso", 415), ("text/json", 415), ("application/jsonx", 415),
      ] {
        let path = "/api/v1/auth/initiate"
        var request = phone.naming.encoded
        request += " "
        let answer = try await Answer(
          to: "POST", path, text: nil, assertion: backend.gate.assertion(for: phone.app, of: ("POST", path)),
          headers: [("Content-Type", type)], body: request, at: backend.port)
        #expect(answer.status == status, "\(type)")
      }
      for (scheme, status) in [("Bearer", 200), ("bEARER", 200), ("Bearer\u{301}", 401), ("Basic", 401)] {
        let answer = try await backend.send(
          "GET", "/api/v1/auth/mfa/status", as: phone.app, headers: [("Authorization", "\(scheme) \(token)")])
        #expect(answer.status == status, "\(scheme)")
      }
    }
  }
}
