import Foundation
import MFAFixtures
import TestSupport
import Testing

@Suite("Messages of the release program", .serialized, .timeLimit(.minutes(3)))
struct MessageSettingsTests {
  /// A server of SMS, which prints each request as one line of JSON, and accepts those with the current token.
  private static let provider = """
    import http.server, json, sys
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_error(404)
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            print(json.dumps({"path": self.path, "token": self.headers["X-Key"], "body": body}), flush=True)
            self.send_response(202); self.end_headers()
        def log_message(self, *_): pass
    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)
    server.serve_forever()
    """

  private static func sms(_ port: Int, _ body: String = #"{\"to\": \"{{to}}\", \"text\": \"{{text}}\"}"#) -> String {
    """
    sms:
      http:
        url: "http://127.0.0.1:\(port)/v1/send?kind=otp"
        headers: ["X-Key: {{token}}"]
        body: "\(body)"
        escape: json
        status: 202
        token_file: sms.token
    messages: { templates: texts }
    """
  }

  @Test("an SMS in the caller's language reaches the provider of a template; its token is read for each message")
  func sent() async throws {
    try await BackendInstallation.make { place in
      let provider = try ChildProcess(Places.tool("python3"), ["-c", Self.provider])
      defer { provider.kill() }
      let port = try #require(Int(try await provider.output.first("its port") { Int($0) != nil }))
      try place.write("first\n", toPrivate: "sms.token")
      try FileManager.default.createDirectory(atPath: place.folder + "/texts", withIntermediateDirectories: false)
      try place.write("Ihr Code für {{service}}: {{code}}\n", toPrivate: "texts/code.sms.de.txt")
      try place.configure(Self.sms(port))
      let check = try await place.operate("check")
      #expect(
        check.output.contains(
          "ok: sms.http.url: http://127.0.0.1:\(port)/ answers; no SMS was sent, so the credentials are not proved"),
        "\(check)")
      #expect(check.output.contains("ok: messages.templates: 1 template, also for de"), "\(check)")
      try await place.serving { backend in
        for (name, token, language) in [("ada", "first", "de-AT,en;q=0.3"), ("bob", "second", "en")] {
          try place.write(token + "\n", toPrivate: "sms.token")
          try FileManager.default.setAttributes(
            [.posixPermissions: 0o640], ofItemAtPath: place.folder + "/sms.token")
          let phone = TestPhone(username: name)
          for (path, body) in [("/mfa/enroll", phone.enrolment(method: "smsOTP")), ("/auth/initiate", phone.naming)] {
            let answer = try await curl(
              "POST", "http://127.0.0.1:\(backend.port ?? 0)/api/v1\(path)", body,
              [
                "-H", "X-Attest-Assertion: \(try await place.gate.assertion(for: phone.app))", "-H",
                "Accept-Language: \(language)",
              ])
            #expect(answer.status == 200, "\(answer.text)")
          }
          let line = try await provider.output.first("the SMS") { $0.contains("\"token\": \"\(token)\"") }
          let sms = try JSONValue(Data(line.utf8))
          #expect(sms["path"]?.text == "/v1/send?kind=otp" && sms["body"]?["to"]?.text == phone.number)
          let text = sms["body"]?["text"]?.text ?? ""
          #expect(
            name == "ada" ? text.hasPrefix("Ihr Code für Sallyport: ") : text.hasPrefix("Your OTP is "), "\(text)")
        }
        let status = try await place.operate("status", "--json")
        #expect(status.output.joined().contains("http://127.0.0.1:\(port)/\""), "\(status)")
        #expect(!backend.process.errors.lines.joined().contains("kind=otp"))
        // The group could not read the file at the start, and no message warns of it.
        #expect(!backend.process.errors.lines.joined().contains("is readable by its group"))
      }
    }
  }

  @Test("check names each fault of templates and of the request, and run does not start with them")
  func faults() async throws {
    try await BackendInstallation.make { place in
      try place.write("first\n", toPrivate: "sms.token")
      try FileManager.default.createDirectory(atPath: place.folder + "/texts", withIntermediateDirectories: false)
      try place.write("{{cod}}", toPrivate: "texts/code.sms.txt")
      try place.configure(Self.sms(1, #"{\"to\": {{to}}, \"text\": \"{{text}}\"}"#))
      for command in ["check", "run"] {
        let run = try await place.operate(command)
        #expect(run.exit == .code(78), "\(run)")
        let errors = run.errors.joined(separator: "\n")
        let body = "sms.http.body: is not JSON with its values: write each placeholder within a string, \"{{to}}\""
        let template =
          "code.sms.txt:1: {{cod}} is unknown in this message: use {{code}}, {{domain}}, {{minutes}}, {{service}} "
          + "(did you mean {{code}})"
        #expect(errors.contains(template), "\(run)")
        if command == "check" {
          #expect(errors.contains("mfa.yaml:11:11: \(body)"), "\(run)")
          #expect(errors.contains("mfa.yaml:15:24: messages.templates: \(template)"), "\(run)")
        }
      }
    }
  }
}
