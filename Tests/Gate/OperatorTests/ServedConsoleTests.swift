import Foundation
import GateProcesses
import SimulatedDevice
import TestSupport
import Testing

@Suite("The console of a gate over TLS", .serialized, .timeLimit(.minutes(5)))
struct ServedConsoleTests {
  /// Runs a console for a gate, in whose folder `ada`, `bob` and `eve` have certificates.
  private static func serving(
    people: [String: String] = ["ada": "admin", "bob": "view"], _ more: String = "",
    _ body: (AdminBench, ServedConsoleProcess) async throws -> Void
  ) async throws {
    try await AdminBench.serving { bench in
      let (folder, file) = (bench.gate.folder.path, bench.config[1])
      try await ServedConsoleProcess.makeCertificates(for: ["ada", "bob", "eve"], in: folder)
      try ServedConsoleProcess.add(to: file, people: people, more)
      let console = try await ServedConsoleProcess("sallyport", file, in: folder)
      defer { console.process.kill() }
      try await body(bench, console)
    }
  }

  @Test("Two people sign in by certificate, one revokes a key, and the gate logs the person")
  func certificates() async throws {
    try await Self.serving { bench, console in
      let (_, hash) = try await bench.registeredPhone()
      let ada = try await console.signIn(as: "ada")
      let bob = try await console.signIn(as: "bob")
      #expect(try await console.send("GET", "/keys/\(hash)", as: "ada", cookie: ada).text.contains("/act/revoke"))
      #expect(try await !console.send("GET", "/keys/\(hash)", as: "bob", cookie: bob).text.contains("/act/revoke"))
      let done = try await console.act("revoke", "key=\(hash)", on: "/keys/\(hash)", as: "ada", cookie: ada)
      #expect(done.status == 303 && done.headers.first("Location") == "/keys/\(hash)?done=revoke")
      let line = try await bench.gate.process.errors.first("the line about the change") {
        $0.contains("key revoked by operator")
      }
      let fields = try #require(JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
      #expect(fields["person"] as? String == "CN=ada" && fields["process"] as? Int32 == console.process.id)
      let act = try await console.act("restore", "key=\(hash)", on: "/", as: "bob", cookie: bob)
      #expect(act.status == 403 && act.text.contains("Your role is view"))
      _ = try await console.process.errors.first("the sign-in") { $0.contains(#""person":"CN=bob","role":"view""#) }
    }
  }

  @Test("A stolen cookie, a certificate without a role, of another CA or none, another host and plain HTTP get nothing")
  func attacks() async throws {
    try await Self.serving { _, console in
      let ada = try await console.signIn(as: "ada")
      for thief in [nil, "bob", "eve"] {
        #expect(try await console.send("GET", "/keys", as: thief, cookie: ada).status == 401)
      }
      for name in [nil, "eve"] {
        let answer = try await console.send("POST", "/sign-in/certificate", as: name)
        #expect(answer.status == 403 && answer.headers.first("Set-Cookie") == nil)
      }
      await #expect(throws: ServedConsoleProcess.Refused.self) {
        try await console.send("GET", "/", as: "foreign-ada")
      }
      for fields in [["Host: evil.example"], ["Host: 127.0.0.1:\(console.port)"]] {
        #expect(try await console.send("GET", "/", as: "ada", cookie: ada, fields).status == 421)
      }
      for origin in ["https://evil.example", "http://console.example:7443", "null"] {
        let answer = try await console.send(
          "POST", "/sign-in/certificate", as: "ada", ["Origin: \(origin)"])
        #expect(answer.status == 403 && answer.headers.first("Set-Cookie") == nil)
      }
      let plain = try await Aside { [port = console.port] in
        let connection = try RawConnection(port: port)
        connection.send("GET / HTTP/1.1\r\nHost: console.example:7443\r\n\r\n")
        return connection.firstAnswer()
      }.value
      #expect(plain.contains("this port speaks TLS"))
      #expect(try await console.send("GET", "/keys", as: "ada", cookie: ada).status == 200)
    }
  }

  @Test("A reload ends the session of a person without a role, and a faulty one changes nothing")
  func reload() async throws {
    try await Self.serving { bench, console in
      let file = bench.config[1]
      let ada = try await console.signIn(as: "ada")
      let bob = try await console.signIn(as: "bob")
      let text = try String(contentsOfFile: file, encoding: .utf8)
      try text.replacing("role: view", with: "role: nothing").replacing("role: admin", with: "role: everything").write(
        toFile: file, atomically: true, encoding: .utf8)
      try await console.reload()
      let refusal = try #require(console.process.errors.lines.last { $0.contains("configuration re") })
      #expect(refusal.contains("refused"))
      // The log is all that an operator of a reload sees: it has every fault.
      #expect(refusal.contains("people[0].role") && refusal.contains("people[1].role"), "\(refusal)")
      #expect(try await console.send("GET", "/keys", as: "ada", cookie: ada).status == 200)
      try ServedConsoleProcess.add(to: file, people: ["bob": "view"])
      try await console.reload()
      #expect(try await console.send("GET", "/keys", as: "ada", cookie: ada).status == 401)
      #expect(try await console.send("GET", "/keys", as: "bob", cookie: bob).status == 200)
      #expect(try await console.send("POST", "/sign-in/certificate", as: "ada").status == 403)
      // The gate is asked where the new settings say that it listens.
      let served = try String(contentsOfFile: file, encoding: .utf8)
      try served.replacing(/admin: \{ listen: "([^"]+)"/) { "admin: { listen: \"\($0.output.1).moved\"" }.write(
        toFile: file, atomically: true, encoding: .utf8)
      try await console.reload()
      let lost = try await console.send("GET", "/keys", as: "bob", cookie: bob)
      #expect(lost.status == 502 && lost.text.contains(".moved"))
      try served.write(toFile: file, atomically: true, encoding: .utf8)
      try await console.reload()
      #expect(try await console.send("GET", "/keys", as: "bob", cookie: bob).status == 200)
      console.process.send(SIGTERM)
      #expect(try await console.process.exit() == .code(0))
    }
  }

  @Test("A list that revokes a certificate counts although the console's key is refused, and the key is tried again")
  func revocationBesideFault() async throws {
    try await AdminBench.serving { bench in
      let (folder, file) = (bench.gate.folder.path, bench.config[1])
      try await ServedConsoleProcess.makeCertificates(for: ["ada", "bob"], in: folder)
      try await ServedConsoleProcess.makeRevocationList(in: folder)
      try ServedConsoleProcess.add(to: file, people: ["ada": "admin", "bob": "admin"], "crl_file: crl.pem")
      let console = try await ServedConsoleProcess("sallyport", file, in: folder)
      defer { console.process.kill() }
      let bob = try await console.signIn(as: "bob")
      #expect(try await console.send("GET", "/keys", as: "bob", cookie: bob).status == 200)
      try #require(chmod("\(folder)/console.key", 0o644) == 0)
      try await ServedConsoleProcess.makeRevocationList(revoking: "bob", in: folder)
      _ = try await console.process.errors.first("the list") { $0.contains("list of revoked certificates read alone") }
      _ = try await console.process.errors.first("the refusal") { $0.contains("files refused") }
      // The handshake fails, or the session is over: to OpenSSL, two lists of one second are equally new.
      let answer = try? await console.send("GET", "/keys", as: "bob", cookie: bob)
      #expect(answer?.status ?? 401 == 401)
      _ = try await console.signIn(as: "ada")
      try #require(chmod("\(folder)/console.key", 0o600) == 0)
      _ = try await console.process.errors.first("the files") { $0.contains("files reloaded") }
      await #expect(throws: ServedConsoleProcess.Refused.self) {
        try await console.send("GET", "/keys", as: "bob", cookie: bob)
      }
    }
  }

  @Test("Connections that send nothing leave room for others, and a console without a gate says so")
  func slowClients() async throws {
    try await Self.serving { bench, console in
      let ada = try await console.signIn(as: "ada")
      // An address has 32 connections.
      let silent = try (0..<24).map { _ in try RawConnection(port: console.port) }
      #expect(try await console.send("GET", "/keys", as: "ada", cookie: ada).status == 200)
      withExtendedLifetime(silent) {}
      try await bench.gate.crash()
      let down = try await console.send("GET", "/keys", as: "ada", cookie: ada)
      #expect(down.status == 502 && down.text.contains("Is the gate running?"))
    }
  }

  @Test("People sign in at a provider by their groups, and an answer with a fault signs no one in")
  func provider() async throws {
    let provider = try await ProviderProcess()
    let settings = provider.settings(groups: ["staff": "view", "support": "support"])
    try await AdminBench.serving { bench in
      let (folder, file) = (bench.gate.folder.path, bench.config[1])
      try await ServedConsoleProcess.makeCertificates(for: [], in: folder)
      try ProviderProcess.writeSecret(in: folder)
      try ServedConsoleProcess.add(to: file, people: [:], settings)
      let console = try await ServedConsoleProcess("sallyport", file, in: folder)
      defer { console.process.kill() }
      let (_, hash) = try await bench.registeredPhone()

      try await provider.set(groups: #"["staff", "support"]"#)
      let good = try await console.signIn(at: provider)
      #expect(good.status == 200 && good.text.contains("Signed in as ada (user 1)"))
      let cookie = try #require(good.session)
      let done = try await console.act("revoke", "key=\(hash)", on: "/keys/\(hash)", cookie: cookie)
      #expect(done.status == 303)
      _ = try await bench.gate.process.errors.first("the line about the change") {
        $0.contains("key revoked by operator") && $0.contains(#""person":"ada (user 1)""#)
      }

      for groups in ["[]", #"["Support", "support ", "suppоrt"]"#, "7", #"{"support": true}"#, "null"] {
        try await provider.set(groups: groups)
        let answer = try await console.signIn(at: provider)
        #expect(answer.status == 403 && answer.session == nil, "\(groups)")
      }
      let many = (0...1000).map { "\"group \($0)\"" }.joined(separator: ",")
      try await provider.set(groups: "[\(many),\"support\"]")
      #expect(try await console.signIn(at: provider).text.contains("at most 1000 are read"))
      for fault in [
        "alg_none", "hs256_public_key", "bad_signature", "wrong_iss", "wrong_aud", "wrong_nonce", "expired",
        "wrong_at_hash", "redirect_other_iss", "redirect_no_iss", "wrong_state", "token_redirect", "no_id_token",
        "token_response_too_large", "jwks_too_large", "token_answer_lost", "token_not_json", "token_hang",
      ] {
        try await provider.set(fault: fault, groups: #"["support"]"#)
        let answer = try await console.signIn(at: provider)
        #expect([403, 502].contains(answer.status) && answer.session == nil, "\(fault): \(answer.status)")
      }
    }
    await provider.stop()
  }

  @Test("Of two ways to send the secret, the one for which the provider has registered the console is found")
  func secretInBody() async throws {
    let provider = try await ProviderProcess()
    try await AdminBench.serving { bench in
      let (folder, file) = (bench.gate.folder.path, bench.config[1])
      try await ServedConsoleProcess.makeCertificates(for: [], in: folder)
      try ProviderProcess.writeSecret(in: folder)
      let settings = provider.settings(groups: ["support": "support"], client: "post-client")
      try ServedConsoleProcess.add(to: file, people: [:], settings)
      let console = try await ServedConsoleProcess("sallyport", file, in: folder)
      defer { console.process.kill() }
      for _ in 0..<2 {
        try await provider.set(groups: #"["support"]"#)
        #expect(try await console.signIn(at: provider).session != nil)
      }
      try await provider.set(fault: "invalid_client", groups: #"["support"]"#)
      let refused = try await console.signIn(at: provider)
      #expect(refused.status == 502 && refused.session == nil && refused.text.contains("client_secret_file"))
    }
    await provider.stop()
  }

  @Test("A redirect without the browser's own cookie, and one that was used before, sign no one in")
  func redirects() async throws {
    let provider = try await ProviderProcess()
    try await AdminBench.serving { bench in
      let (folder, file) = (bench.gate.folder.path, bench.config[1])
      try await ServedConsoleProcess.makeCertificates(for: [], in: folder)
      try ProviderProcess.writeSecret(in: folder)
      try ServedConsoleProcess.add(to: file, people: [:], provider.settings(groups: ["support": "support"]))
      let console = try await ServedConsoleProcess("sallyport", file, in: folder)
      defer { console.process.kill() }
      try await provider.set(groups: #"["support"]"#)
      let (redirect, cookie) = try await console.begin(at: provider)
      let (_, other) = try await console.begin(at: provider)
      for foreign in [nil, other] {
        let answer = try await console.send("GET", redirect, cookie: foreign)
        #expect(answer.status == 403 && answer.session == nil)
      }
      #expect(try await console.send("GET", redirect, cookie: cookie).session != nil)
      let again = try await console.send("GET", redirect, cookie: cookie)
      #expect(again.status == 403 && again.session == nil)
    }
    await provider.stop()
  }

  @Test("Without settings there is no console to serve, and options of the loopback have no place next to --serve")
  func refusals() async throws {
    try await AdminBench.serving { bench in
      let run = try await sallyport(["console", "--serve"] + bench.config)
      #expect(run.status == 78 && run.errors.joined().contains("admin.console.listen is not set"))
      for option in [["--role", "view"], ["--port", "7000"], ["--print"]] {
        #expect(try await sallyport(["console", "--serve"] + option + bench.config).status == 64)
      }
    }
  }
}
