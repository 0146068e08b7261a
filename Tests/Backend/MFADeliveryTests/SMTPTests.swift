import ByteCoding
import Foundation
import MFADelivery
import MFADomain
import MFAFixtures
import Testing
import TestSupport

@Suite("E-mail by SMTP", .serialized)
struct SMTPTests {
  /// aiosmtpd, which prints each mail as one line of JSON.
  private static let server = """
    import asyncio, base64, email, email.policy, json, ssl, sys
    from aiosmtpd.controller import Controller
    from aiosmtpd.smtp import SMTP, AuthResult

    class Handler:
        async def handle_RCPT(self, server, session, envelope, address, options):
            envelope.rcpt_tos.append(address)
            return "251 User not local; will forward" if address.startswith("moved") else "250 OK"

        async def handle_DATA(self, server, session, envelope):
            mail = email.message_from_bytes(envelope.content, policy=email.policy.default)
            print(json.dumps({"from": envelope.mail_from, "to": envelope.rcpt_tos, "tls": session.ssl is not None,
                              "user": session.auth_data, "text": envelope.content.decode(),
                              "subject": mail["subject"], "body": mail.get_content(),
                              "fields": mail.keys()}), flush=True)
            return sys.argv[4]

        async def auth_XOAUTH2(self, server, args):
            good = base64.b64decode(args[1]) == b"user=user\\x01auth=Bearer renewed\\x01\\x01"
            return AuthResult(success=good, handled=False, auth_data="user by token" if good else None)

    def authenticate(server, session, envelope, mechanism, data):
        good = data.login == b"user" and data.password == b"password"
        return AuthResult(success=good, auth_data="user" if good else None)

    port, cert, key, _, host, implicit = sys.argv[1:7]
    context = None
    if cert:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
    class Server(Controller):
        def factory(self):
            if implicit:
                return SMTP(self.handler, authenticator=authenticate, auth_required=True, auth_require_tls=False,
                            auth_exclude_mechanism=["PLAIN"])
            return SMTP(self.handler, tls_context=context, require_starttls=bool(cert), authenticator=authenticate,
                        auth_require_tls=True)
    controller = Server(Handler(), hostname=host, port=int(port), ssl_context=context if implicit else None)
    controller.start()
    print("ready", flush=True)
    sys.stdin.read()
    """

  private func withServer(
    tls: Bool = true, implicit: Bool = false, answer: String = "250 OK", at host: String = "127.0.0.1",
    subject: String = "DNS:mail.test",
    _ body: (SMTPProvider.Server, ChildProcess) async throws -> Void
  ) async throws {
    try await Places.withTemporaryFolder { folder in
      let (certificate, key) = (folder + "/cert.pem", folder + "/key.pem")
      if tls {
        let made = try await ChildProcess.run(
          Places.tool("openssl"),
          [
            "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
            "/CN=mail.test", "-addext", "subjectAltName=\(subject)", "-keyout", key, "-out", certificate,
          ])
        #expect(made.exit == .code(0))
      }
      let port = try Places.freePort()
      let process = try ChildProcess(
        Places.tool("python3"),
        [
          "-c", Self.server, String(port), tls ? certificate : "", tls ? key : "", answer, host, implicit ? "1" : "",
        ])
      defer { process.kill() }
      _ = try await process.output.first("readiness") { $0 == "ready" }
      try await body(
        SMTPProvider.Server(
          host: host, port: Int(port), serverName: subject.hasPrefix("DNS:") ? "mail.test" : nil,
          authority: tls ? certificate : nil,
          usesTLS: tls, beginsWithTLS: implicit), process)
    }
  }

  private func provider(_ server: SMTPProvider.Server) throws -> SMTPProvider {
    SMTPProvider(server: server, sender: try EmailAddress("mfa@example.com"), domain: "example.com")
  }

  private func message() throws -> OutgoingMessage {
    OutgoingMessage(destination: .email(try EmailAddress("ada@example.org")), code: "042042", lifetime: .seconds(300))
  }

  @Test(
    "a server whose greeting drips fails in time, and the mail is sent again later", .timeLimit(.minutes(1)),
    arguments: ["220-", "220-a\r\n220"])
  func drips(greeting: String) async throws {
    let server = try DrippingServer(opening: Array(greeting.utf8))
    defer { server.stop() }
    let provider = SMTPProvider(
      server: SMTPProvider.Server(host: "127.0.0.1", port: Int(server.port), usesTLS: false),
      sender: try EmailAddress("mfa@example.com"), domain: "example.com", deliveryTime: .milliseconds(300))
    let message = try message()
    await #expect(throws: DeliveryFailure(reason: "no answer within the time allowed", isTemporary: true)) {
      try await provider.deliver(message)
    }
  }

  @Test("the reply 251 of a server that forwards the mail is a success")
  func forwarded() async throws {
    try await withServer(tls: false) { server, process in
      try await provider(server).deliver(
        OutgoingMessage(
          destination: .email(try EmailAddress("moved@example.org")), code: "042042", lifetime: .seconds(300)))
      let line = try await process.output.first("a mail") { $0.hasPrefix("{") }
      #expect(line.contains(#""to": ["moved@example.org"]"#))
    }
  }

  @Test("B-074 a code arrives by SMTP, over TLS and with a password")
  func arrives() async throws {
    try await withServer { server, process in
      var server = server
      server.user = "user"
      server.password = "password"
      try await provider(server).deliver(message())
      let line = try await process.output.first("a mail") { $0.hasPrefix("{") }
      #expect(line.contains(#""from": "mfa@example.com", "to": ["ada@example.org"], "tls": true, "user": "user""#))
      #expect(line.contains("Your OTP is 042042"))
      #expect(line.contains("@example.com #042042"))
    }
  }

  @Test("a mail by a template arrives in the recipient's language, with TLS from the beginning and AUTH LOGIN")
  func template() async throws {
    let text =
      "Subject: Ihr Prüfcode für {{service}} – {{service}}, {{service}}\n\n.Grüße: {{code}}\n.\n{{minutes}} 分\n"
    let templates = try MessageTemplates([("code.email.de.txt", Array(text.utf8))], service: "Söhne\r\nBcc: eve@x")
    try await withServer(implicit: true) { server, process in
      var server = server
      (server.user, server.password) = ("user", "password")
      let provider = SMTPProvider(
        server: server, sender: try EmailAddress("mfa@example.com"), domain: "example.com", templates: templates)
      for languages in ["de-AT, en;q=0.5", "en"] {
        try await provider.deliver(
          OutgoingMessage(
            destination: .email(try EmailAddress("ada@example.org")), code: "042042", lifetime: .seconds(300),
            languages: Languages(acceptLanguage: languages)))
      }
      _ = try await process.output.first("the second mail") { $0.contains("Your OTP is 042042") }
      let mails = try process.output.lines.filter { $0.hasPrefix("{") }.map { try JSONValue(Data($0.utf8)) }
      let service = "Söhne  Bcc: eve@x"
      #expect(mails[0]["subject"]?.text == "Ihr Prüfcode für \(service) – \(service), \(service)", "\(mails)")
      #expect(mails[0]["body"]?.text?.replacing("\r\n", with: "\n") == ".Grüße: 042042\n.\n5 分\n")
      #expect(mails[0]["user"]?.text == "user")
      // No value of a template begins a header field.
      #expect(mails[0]["text"]?.text?.contains("\nBcc") == false)
      #expect(mails[1]["subject"]?.text == "Your verification code")
    }
  }

  @Test("a token that another program renews in its file signs in by XOAUTH2 at the next mail")
  func renewedToken() async throws {
    try await withServer(implicit: true) { server, process in
      var server = server
      server.user = "user"
      let file = NSTemporaryDirectory() + "token-\(UUID().uuidString)"
      defer { try? FileManager.default.removeItem(atPath: file) }
      try "expired".write(toFile: file, atomically: true, encoding: .utf8)
      let provider = SMTPProvider(
        server: server, sender: try EmailAddress("mfa@example.com"), domain: "example.com",
        token: { try String(contentsOfFile: file, encoding: .utf8) })
      let message = try message()
      let failure = await #expect(throws: DeliveryFailure.self) { try await provider.deliver(message) }
      #expect(failure?.reason.hasPrefix("reply 5") == true, "\(failure as Any)")
      try "renewed".write(toFile: file, atomically: true, encoding: .utf8)
      try await provider.deliver(message)
      let line = try await process.output.first("a mail") { $0.hasPrefix("{") }
      #expect(line.contains(#""user": "user by token""#))
    }
  }

  @Test("A-229 a notice by e-mail has a subject and a text of its own")
  func recovery() async throws {
    try await withServer { server, process in
      let content = OutgoingMessage.Content.recoveryStarted(
        stopCode: "ABCD2345", readyAt: Timestamp(seconds: 1_767_225_600))
      try await provider(server).deliver(
        OutgoingMessage(
          destination: .email(try EmailAddress("ada@example.org")), content: content, lifetime: .seconds(86400)))
      let line = try await process.output.first("a mail") { $0.hasPrefix("{") }
      #expect(line.contains("Subject: Your account is being recovered"))
      #expect(line.contains("with the code ABCD2345."))
    }
  }

  @Test(
    "B-074 the certificate of a server that is configured by address must have that address",
    arguments: ["127.0.0.1", "::1"], [true, false])
  func address(_ host: String, _ isMatching: Bool) async throws {
    try await withServer(at: host, subject: "IP:\(isMatching ? host : "192.0.2.1")") { server, process in
      let message = try message()
      guard isMatching else {
        await #expect(throws: DeliveryFailure.self) { try await provider(server).deliver(message) }
        #expect(process.output.lines == ["ready"])
        return
      }
      try await provider(server).deliver(message)
      let line = try await process.output.first("a mail") { $0.hasPrefix("{") }
      #expect(line.contains(#""tls": true"#))
    }
  }

  @Test("B-074 no mail is sent to a server whose certificate is not trusted or has another name")
  func untrusted() async throws {
    try await withServer { server, process in
      var (outsider, misnamed) = (server, server)
      outsider.authority = nil
      misnamed.serverName = "other.test"
      for server in [outsider, misnamed] {
        let message = try message()
        await #expect(throws: DeliveryFailure.self) { try await provider(server).deliver(message) }
      }
      #expect(process.output.lines == ["ready"])
    }
  }

  @Test("B-074 no mail is sent to a server without STARTTLS")
  func noTLS() async throws {
    try await withServer(tls: false) { server, process in
      var server = server
      server.usesTLS = true
      let message = try message()
      await #expect(throws: DeliveryFailure.self) { try await provider(server).deliver(message) }
      #expect(process.output.lines == ["ready"])
    }
  }

  @Test(
    "B-074 the failure says whether the refusal is temporary or permanent",
    arguments: [("451 later", true), ("554 no", false)])
  func refused(_ answer: String, _ isTemporary: Bool) async throws {
    try await withServer(answer: answer) { server, _ in
      let message = try message()
      let error = await #expect(throws: DeliveryFailure.self) { try await provider(server).deliver(message) }
      #expect(error?.isTemporary == isTemporary)
    }
  }
}
