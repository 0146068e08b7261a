import ByteCoding
import Foundation
import MFADelivery
import MFADomain
import TestSupport
import Testing

@Suite("Mail servers and what they offer", .serialized, .timeLimit(.minutes(3)))
struct SMTPOfferTests {
  /// A mail server that offers the extensions that it is told, and prints what it gets.
  private static let server = #"""
    import base64, socket, ssl, sys
    port, cert, key, implicit, offers, refused = sys.argv[1:7]
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER); tls.load_cert_chain(cert, key)
    listener = socket.create_server(("127.0.0.1", int(port))); print("ready", flush=True)
    while True:
        c, _ = listener.accept()
        try:
            secure = implicit == "1"
            if secure: c = tls.wrap_socket(c, server_side=True)
            f = c.makefile("rb")
            def say(*lines): c.sendall("".join(l + "\r\n" for l in lines).encode())
            say("220 mail")
            while line := f.readline().decode().strip("\r\n") or "-":
                print("C:", line, flush=True)
                verb = line.upper().split(" ")[0]
                if verb == "EHLO":
                    if line[5:] == refused: say("421 4.7.0 Try again later"); break
                    say("250-mail", "250-STARTTLS", *(["250-" + o for o in offers.split("|") if o] if secure else
                        ["250-AUTH PLAIN LOGIN"]), "250 8BITMIME")
                elif verb == "STARTTLS": say("220 go"); c = tls.wrap_socket(c, server_side=True); f = c.makefile("rb"); secure = True
                elif verb == "AUTH" and line.split(" ")[1] == "XOAUTH2":
                    text = base64.b64decode(line.split(" ")[2]).decode()
                    if text == "user=u\x01auth=Bearer fresh\x01\x01": say("235 ok")
                    else: say("334 " + base64.b64encode(b'{"status":"401"}').decode()); f.readline(); say("535 5.7.3 no")
                elif verb == "AUTH" and line.split(" ")[1] == "LOGIN":
                    say("334 VXNlcm5hbWU6"); user = base64.b64decode(f.readline())
                    say("334 UGFzc3dvcmQ6"); word = base64.b64decode(f.readline())
                    say("235 ok" if (user, word) == (b"u", b"p") else "535 no")
                elif verb == "AUTH": say("235 ok" if base64.b64decode(line.split(" ")[2]) == b"\0u\0p" else "535 no")
                elif verb == "DATA":
                    say("354 go")
                    while (text := f.readline().rstrip(b"\r\n")) != b".": print("D:", text.decode(), flush=True)
                    say("250 ok")
                elif verb == "QUIT": say("221 bye"); break
                elif line == "-": break
                else: say("250 ok")
        except OSError as error: print("!", error, flush=True)
        c.close()
    """#

  private static func reader(of token: String) -> @Sendable () throws -> String { { token } }

  /// Runs the server, and delivers one mail.
  private func deliver(
    offers: String, implicit: Bool = false, asImplicit: Bool? = nil, refused: String = "", greeting: String? = nil,
    password: String? = "p", token: String? = nil, sender: String = "mfa@sender.example",
    to recipient: String = "ada@example.org", isProbe: Bool = false
  ) async throws -> (failure: DeliveryFailure?, lines: [String]) {
    try await Places.withTemporaryFolder { folder in
      let (certificate, key) = (folder + "/cert.pem", folder + "/key.pem")
      let made = try await ChildProcess.run(
        Places.tool("openssl"),
        [
          "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
          "/CN=mail.test", "-addext", "subjectAltName=DNS:mail.test", "-keyout", key, "-out", certificate,
        ])
      #expect(made.exit == .code(0))
      let port = try Places.freePort()
      let process = try ChildProcess(
        Places.tool("python3"),
        ["-c", Self.server, String(port), certificate, key, implicit ? "1" : "0", offers, refused])
      defer { process.kill() }
      _ = try await process.output.first("readiness") { $0 == "ready" }
      let server = SMTPProvider.Server(
        host: "127.0.0.1", port: Int(port), serverName: "mail.test", authority: certificate,
        beginsWithTLS: asImplicit ?? implicit, user: password == nil && token == nil ? nil : "u", password: password)
      let provider = SMTPProvider(
        server: server, sender: try EmailAddress(trusted: sender), domain: "service.example", greeting: greeting,
        token: token.map(Self.reader), deliveryTime: .seconds(10))
      let message = OutgoingMessage(
        destination: .email(try EmailAddress(recipient)), code: "042042", lifetime: .seconds(300))
      do throws(DeliveryFailure) {
        if isProbe { try await provider.probe() } else { try await provider.deliver(message) }
        return (nil, process.output.lines)
      } catch {
        return (error, process.output.lines)
      }
    }
  }

  @Test(
    "a password goes by the method that the server offers, in this order",
    arguments: [
      ("AUTH LOGIN XOAUTH2", "AUTH LOGIN"), ("AUTH=LOGIN", "AUTH LOGIN"), ("auth login plain", "AUTH PLAIN"),
      ("", "AUTH PLAIN"),
    ])
  func password(_ offers: String, _ method: String) async throws {
    let sent = try await deliver(offers: offers)
    #expect(sent.failure == nil, "\(sent)")
    #expect(sent.lines.filter { $0.hasPrefix("C: AUTH") }.allSatisfy { $0.hasPrefix("C: " + method) }, "\(sent)")
    #expect(sent.lines.contains("D: Your OTP is 042042"))
  }

  @Test("a method that is not offered is named, and the password stays")
  func noMethod() async throws {
    let sent = try await deliver(offers: "AUTH GSSAPI XOAUTH2")
    #expect(
      sent.failure
        == DeliveryFailure(
          reason: "the mail server offers GSSAPI, XOAUTH2 and not PLAIN or LOGIN", isTemporary: false), "\(sent)")
    #expect(!sent.lines.contains { $0.hasPrefix("C: AUTH") })
    let token = try await deliver(offers: "AUTH PLAIN LOGIN", password: nil, token: "fresh")
    #expect(token.failure?.reason == "the mail server offers PLAIN, LOGIN and not XOAUTH2")
  }

  @Test("a token signs in by XOAUTH2, and a refused one ends with the server's code")
  func token() async throws {
    let sent = try await deliver(offers: "AUTH LOGIN XOAUTH2", password: nil, token: "fresh")
    #expect(sent.failure == nil && sent.lines.contains("D: Your OTP is 042042"), "\(sent)")
    let refused = try await deliver(offers: "AUTH LOGIN XOAUTH2", password: nil, token: "old")
    #expect(
      refused.failure == DeliveryFailure(reason: "reply 535 instead of 235", isTemporary: false), "\(refused)")
  }

  @Test("TLS begins with the connection where that is set, and a server without it gets nothing")
  func implicit() async throws {
    let sent = try await deliver(offers: "AUTH PLAIN", implicit: true)
    #expect(sent.failure == nil && sent.lines.contains("D: Your OTP is 042042"), "\(sent)")
    #expect(!sent.lines.contains { $0.hasPrefix("C: STARTTLS") })
    let plain = try await deliver(offers: "AUTH PLAIN", implicit: false, asImplicit: true)
    #expect(plain.failure != nil && !plain.lines.contains { $0.contains("AUTH PLAIN") }, "\(plain)")
  }

  @Test("EHLO has the domain of the sender, or the name that is set")
  func greeting() async throws {
    let sent = try await deliver(offers: "AUTH PLAIN", refused: "localhost")
    #expect(sent.failure == nil && sent.lines.filter { $0 == "C: EHLO sender.example" }.count == 2, "\(sent)")
    #expect(sent.lines.contains { $0.hasPrefix("D: Message-ID: <") && $0.hasSuffix("@sender.example>") })
    let named = try await deliver(offers: "AUTH PLAIN", greeting: "gate.example", isProbe: true)
    #expect(named.failure == nil && named.lines.contains("C: EHLO gate.example"), "\(named)")
    let refused = try await deliver(offers: "AUTH PLAIN", refused: "localhost", greeting: "localhost")
    #expect(refused.failure == DeliveryFailure(reason: "reply 421 instead of 250", isTemporary: true))
  }

  @Test("an address beyond ASCII needs a server with SMTPUTF8")
  func utf8() async throws {
    let sent = try await deliver(offers: "AUTH PLAIN|SMTPUTF8", to: "jörg@example.org")
    #expect(sent.failure == nil && sent.lines.contains("C: MAIL FROM:<mfa@sender.example> SMTPUTF8"), "\(sent)")
    #expect(sent.lines.contains("C: RCPT TO:<jörg@example.org>"))
    let plain = try await deliver(offers: "AUTH PLAIN|SMTPUTF8")
    #expect(plain.lines.contains("C: MAIL FROM:<mfa@sender.example>"))
    let refused = try await deliver(offers: "AUTH PLAIN", to: "jörg@example.org")
    #expect(
      refused.failure?.isTemporary == false && refused.failure?.reason.contains("SMTPUTF8") == true, "\(refused)")
    #expect(!refused.lines.contains { $0.contains("MAIL FROM") })
  }

  @Test(
    "servers of reports take a mail",
    .enabled(if: SharedWorld.has("smtp"), "\(SharedWorld.absence("smtp"))"), arguments: ["login", "ehlo"])
  func reports(_ mode: String) async throws {
    try await Places.withTemporaryFolder { folder in
      // It writes its certificate next to itself.
      try FileManager.default.copyItem(
        atPath: SharedWorld.path("smtp/office_smtp.py"), toPath: folder + "/server.py")
      let port = try Places.freePort()
      let process = try ChildProcess(
        Places.tool("env"), ["MODE=\(mode)", "python3", folder + "/server.py", String(port)])
      defer { process.kill() }
      _ = try await process.output.first("readiness") { $0.hasPrefix("mail server") }
      let provider = SMTPProvider(
        server: SMTPProvider.Server(
          host: "127.0.0.1", port: Int(port), authority: folder + "/ca.pem", user: "u", password: "p"),
        sender: try EmailAddress("mfa@example.com"), domain: "localhost")
      try await provider.deliver(
        OutgoingMessage(destination: .email(try EmailAddress("ada@example.org")), code: "042042", lifetime: .seconds(9))
      )
      _ = try await process.output.first("a mail") { $0.contains("2.0.0 accepted") }
    }
  }
}
