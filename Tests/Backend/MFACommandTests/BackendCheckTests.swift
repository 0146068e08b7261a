import Foundation
import Glibc
import MFAFixtures
import TestSupport
import Testing

@Suite("Checking a configuration of the backend", .serialized, .timeLimit(.minutes(5)))
struct BackendCheckTests {
  @Test("every fault is reported with file, line and column, and the exit code is 78")
  func faults() async throws {
    try await BackendInstallation.make { place in
      try place.configure("polcy: { most_devices: 3 }\nlimits: { messages_per_hour: no }")
      let run = try await place.operate("check", "--offline")
      #expect(run.exit == .code(78) && run.output.isEmpty, "\(run)")
      #expect(
        run.errors == [
          "error: \(place.file):7:1: polcy: unknown key (did you mean policy)",
          "error: \(place.file):8:30: limits.messages_per_hour: \"no\" is not a whole number",
          "hint: mfa-backend check --reference lists every key with its values",
        ], "\(run.errors)")
      let json = try await place.operate("check", "--offline", "--json")
      let document = try JSONValue(Data(json.output.joined(separator: "\n").utf8))
      #expect(json.exit == .code(78) && document["status"] == 78)
      let fault = document["faults"]?[1]
      #expect(
        fault?["line"] == 8 && fault?["column"] == 30 && fault?["key"] == "limits.messages_per_hour", "\(document)")
    }
  }

  @Test("an unknown variable with the backend's prefix is a fault that names it and suggests the right one")
  func variable() async throws {
    try await BackendInstallation.make { place in
      let run = try await ChildProcess.run(
        Places.product("mfa-backend"), ["check", "--offline", "-c", place.file],
        environment: ["MFA_BACKEND_LISTNE": "127.0.0.1:1"])
      #expect(run.exit == .code(78))
      #expect(
        run.errors.first == "error: MFA_BACKEND_LISTNE: listne: unknown key (did you mean MFA_BACKEND_LISTEN)",
        "\(run.errors)")
    }
  }

  @Test("the proxy of each server is reported, and the server is asked through it")
  func proxies() async throws {
    try await BackendInstallation.make { place in
      let relay = try ForwardProxyServer(.answer(Array("HTTP/1.1 403 x\r\n\r\n".utf8)))
      defer { relay.stop() }
      let secret = "whsec_" + Data(repeating: 7, count: 32).base64EncodedString()
      try place.write(secret + "\n", toPrivate: "webhooks.secret")
      try place.configure(
        """
        oidc: { issuer: "https://idp.example.test", audience: app }
        webhooks: { url: "https://hooks.example.test/mfa", secret_file: webhooks.secret }
        """, jwks: "https://gate.example.test/jwks.json")
      try await ServedConsoleProcess.makeCertificates(for: [], in: place.folder)
      try ServedConsoleProcess.add(
        to: place.file, people: [:],
        #"oidc: { issuer: "https://staff.example.test", client_id: a, groups: [{ name: a, role: view }] }"#)
      func check(_ variables: [String: String?]) async throws -> (output: [String], errors: [String]) {
        let run = try await ChildProcess.run(
          Places.product("mfa-backend"), ["check", "-c", place.file], environment: variables)
        #expect(!(run.output + run.errors).joined().contains("hunter2"))
        return (run.output, run.errors)
      }
      let proxied = try await check(["https_proxy": "http://u:hunter2@127.0.0.1:\(relay.port)"])
      for (key, host) in [("gate.jwks", "gate"), ("oidc.issuer", "idp")] {
        let text = "ok: \(key): \(host).example.test is reached through the proxy"
        #expect(
          proxied.output.contains("\(text) http://127.0.0.1:\(relay.port) (https_proxy)"), "\(proxied)")
        #expect(proxied.errors.contains { $0.contains("\(key): ") && $0.contains("status 403") }, "\(proxied)")
      }
      // Nothing is sent to these servers.
      for (key, host) in [("webhooks.url", "hooks"), ("admin.console.oidc.issuer", "staff")] {
        let text = "ok: \(key): \(host).example.test is reached through the proxy http://127.0.0.1:\(relay.port)"
        #expect(proxied.output.contains("\(text) (https_proxy)"), "\(proxied)")
      }
      let faulty = try await check(["HTTPS_PROXY": "http://u:hunter2@", "NO_PROXY": "gate.example.test"])
      #expect(faulty.output.contains("ok: gate.jwks: gate.example.test is reached directly (no_proxy)"), "\(faulty)")
      #expect(faulty.errors.contains { $0.hasSuffix("oidc.issuer: HTTPS_PROXY: the value names no host") }, "\(faulty)")
      #expect(
        faulty.errors.contains(
          "hint: write HTTPS_PROXY=http://HOST:PORT, with credentials http://USER:PASSWORD@HOST:PORT"), "\(faulty)")
    }
  }

  @Test("files that the configuration names are judged like settings, with the place of their key")
  func files() async throws {
    try await BackendInstallation.make { place in
      try place.configure("sms: { account: AC1, token_file: token, from: \"+1234567890\" }")
      try place.write("[]", toPrivate: "keys.json")
      let token = place.folder + "/token"
      try "secret\n".write(toFile: token, atomically: true, encoding: .utf8)
      #expect(chmod(token, 0o644) == 0)
      let run = try await place.operate("check", "--offline")
      #expect(run.exit == .code(78), "\(run)")
      #expect(
        run.errors.filter { !$0.hasPrefix("warning: ") } == [
          "error: \(place.file):4:12: keys_file: \(place.folder)/keys.json: no key",
          "hint: create a keys file with: mfa-backend keys make",
          "error: \(place.file):7:34: sms.token_file: every user of this machine can read the secret file \(token)",
          "hint: chmod 600 \(token), and replace the secret if other users could have read it",
        ], "\(run.errors)")
      #expect(!run.errors.joined().contains("secret\n"))
    }
  }

  @Test("a root file that is missing is reported once, with its own key")
  func rootFiles() async throws {
    try await BackendInstallation.make { place in
      let secret = "whsec_" + Data(repeating: 7, count: 32).base64EncodedString()
      try place.write(secret + "\n", toPrivate: "webhooks.secret")
      try place.configure(
        """
        webhooks: { url: "https://hooks.example.test/mfa", secret_file: webhooks.secret, ca_file: missing.pem }
        sms: { http: { url: "https://sms.example.test/?to={{to}}&q={{text}}", method: GET, ca_file: missing.pem } }
        """)
      let run = try await place.operate("check", "--offline")
      #expect(run.exit == .code(78), "\(run)")
      let faults = run.errors.filter { $0.hasPrefix("error: ") }
      let keys = faults.compactMap { $0.split(separator: " ").dropFirst(2).first }
      #expect(keys.sorted() == ["sms.http.ca_file:", "webhooks.ca_file:"], "\(run.errors)")
    }
  }

  @Test("a password file without a password is a fault, as at the start")
  func emptyPassword() async throws {
    try await BackendInstallation.make { place in
      try place.write("\n", toPrivate: "password")
      try place.configure("email: { smtp: \"mail:25\", from: a@example.com, user: u, password_file: password }")
      let run = try await place.operate("check", "--offline")
      #expect(run.exit == .code(78), "\(run)")
      #expect(
        run.errors.first?.hasSuffix(": email.password_file: \(place.folder)/password is empty") == true,
        "\(run.errors)")
    }
  }

  @Test("a sound file whose gate and mail server do not answer exits with 1, and --offline with 0")
  func probes() async throws {
    try await BackendInstallation.make { place in
      let port = try Places.freePort()
      try place.configure(
        "email: { smtp: \"127.0.0.1:\(port)\", from: a@example.com }\noidc: { issuer: \"http://127.0.0.1:\(port)\", audience: app }",
        jwks: "http://127.0.0.1:\(port)/jwks.json")
      let run = try await place.operate("check")
      #expect(run.exit == .code(1), "\(run)")
      let start = "error: \(place.file):"
      #expect(
        run.errors.contains {
          $0.hasPrefix(start)
            && $0.hasSuffix(
              "gate.jwks: cannot fetch the gate's keys from http://127.0.0.1:\(port)/jwks.json: Connection refused")
        }, "\(run.errors)")
      #expect(run.errors.contains("error: \(place.file):7:16: email.smtp: Connection refused"), "\(run.errors)")
      #expect(run.errors.contains { $0.hasPrefix(start) && $0.contains("oidc.issuer: ") }, "\(run.errors)")
      #expect(run.errors.last?.hasPrefix("hint: ") == true)
      #expect(run.errors.contains { $0.contains("email.ehlo (example.com)") }, "\(run.errors)")
      #expect(run.output.contains("ok: database: empty, run creates its tables"), "\(run.output)")
      #expect(run.output.last == "configuration valid; 3 of 6 probes failed", "\(run.output)")
      // A check changes nothing.
      #expect(try FileManager.default.contentsOfDirectory(atPath: place.folder).sorted() == ["keys.json", "mfa.yaml"])
      let offline = try await place.operate("check", "--offline")
      #expect(offline.exit == .code(0) && offline.output == ["configuration valid"], "\(offline)")
    }
  }

  @Test(
    "a mail server passes with the name that EHLO tells it",
    .enabled(
      if: FileManager.default.fileExists(atPath: ProjectFile.path("../shared/world/smtp")),
      "../shared/world/smtp is missing"))
  func greeting() async throws {
    try await BackendInstallation.make { place in
      try await Places.withTemporaryFolder { folder in
        // It writes its certificate next to itself, and refuses EHLO localhost.
        try FileManager.default.copyItem(
          atPath: ProjectFile.path("../shared/world/smtp/office_smtp.py"), toPath: folder + "/server.py")
        let port = try Places.freePort()
        let server = try ChildProcess(
          Places.tool("env"), ["MODE=ehlo", "python3", folder + "/server.py", String(port)])
        defer { server.kill() }
        _ = try await server.output.first("readiness") { $0.hasPrefix("mail server") }
        let mail = "smtp: \"127.0.0.1:\(port)\", ca_file: \"\(folder)/ca.pem\""
        for (more, name) in [("", "example.com"), (", ehlo: mail.example.org", "mail.example.org")] {
          try place.configure("email: { \(mail), from: a@example.com\(more) }")
          let run = try await place.operate("check")
          #expect(run.output.contains("ok: email.smtp: the server answers with TLS to EHLO \(name)"), "\(run)")
        }
      }
    }
  }

  @Test("a check beside the running backend passes: its addresses are its own, and its keys file opens the database")
  func running() async throws {
    try await BackendInstallation.make { place in
      let port = try Places.freePort()
      try place.configure(listen: "127.0.0.1:\(port)")
      try await place.serving { backend in
        let run = try await place.operate("check")
        #expect(run.exit == .code(0) && run.errors.isEmpty, "\(run)")
        for line in [
          "ok: database: current, and the keys file opens its keys", "ok: gate.jwks: 1 key",
          "ok: listen: 127.0.0.1:\(port) is used by the running backend",
          "ok: admin.listen: unix:\(place.socket) is used by the running backend", "configuration valid",
        ] { #expect(run.output.contains(line), "\(run.output)") }
        // Another keys file does not open this database, and another backend cannot have this address.
        try place.write(try await place.mfa("keys", "make").output.joined(), toPrivate: "other.json")
        let other = try await place.operate("check", "--keys", place.folder + "/other.json")
        #expect(other.exit == .code(1) && other.errors.first?.contains("keys_file: data key ") == true, "\(other)")
        let text = try String(contentsOfFile: place.file, encoding: .utf8)
        let free = text.split(separator: "\n").filter { !$0.hasPrefix("admin") }.joined(separator: "\n")
        try free.write(toFile: place.folder + "/second.yaml", atomically: true, encoding: .utf8)
        let second = try await place.mfa("check", "-c", place.folder + "/second.yaml")
        #expect(second.exit == .code(1), "\(second)")
        #expect(second.errors.first?.hasSuffix("cannot listen at 127.0.0.1:\(port): Address already in use") == true)
      }
    }
  }

  @Test("the effective settings show sources and no password")
  func effective() async throws {
    try await BackendInstallation.make { place in
      try place.configure(database: "postgres://mfa:se-cret@db.example/mfa?password=se-cret")
      let run = try await ChildProcess.run(
        Places.product("mfa-backend"), ["check", "--offline", "--effective", "-c", place.file],
        environment: ["MFA_BACKEND_LOG__LEVEL": "debug"])
      #expect(run.exit == .code(0), "\(run)")
      // A file that the program would read again, with the source of each value in a column of comments.
      let lines = run.output.map { $0.split(separator: " ", omittingEmptySubsequences: true).joined(separator: " ") }
      let database = #"database: "postgres://mfa:…@db.example/mfa?password=…" # \#(place.file):3:11"#
      #expect(lines.contains(database), "\(run.output)")
      #expect(lines.contains("level: debug # MFA_BACKEND_LOG__LEVEL"))
      #expect(lines.contains("most_devices: 10 # default"))
      #expect(!(run.output + run.errors).joined().contains("se-cret"))
    }
  }

  @Test("the shipped schema and the guide's table are those of this version, and the shipped example fits the schema")
  func documents() async throws {
    let schema = try await ChildProcess.run(Places.product("mfa-backend"), ["check", "--schema"])
    let shipped = try ProjectFile.text("config/mfa-backend.schema.json")
    #expect(schema.output.joined(separator: "\n") + "\n" == shipped)
    let example = try await ChildProcess.run(Places.product("mfa-backend"), ["check", "--example"])
    #expect(try example.output.joined(separator: "\n") + "\n" == ProjectFile.text("config/mfa-backend.yaml"))
    let reference = try await ChildProcess.run(Places.product("mfa-backend"), ["check", "--reference"])
    let guide = try ProjectFile.text("Sources/Backend/MFAService/MFAService.docc/Guide.md")
    #expect(guide.contains(reference.output.joined(separator: "\n")))
    // Python's jsonschema, an independent validator.
    try await Places.withTemporaryFolder { folder in
      let example = try ProjectFile.text("config/mfa-backend.yaml")
      let broken = [
        ("key", example + "lissten: x\n"),
        ("rate", example.replacing("code_requests: 20/40s", with: "code_requests: 20")),
        ("choice", example.replacing("level: info", with: "level: loud")),
      ]
      for (name, text) in broken {
        #expect(text != example, "\(name)")
        try text.write(toFile: folder + "/" + name, atomically: true, encoding: .utf8)
      }
      let files = [ProjectFile.path("config/mfa-backend.yaml")] + broken.map { folder + "/" + $0.0 }
      let program = [
        ProjectFile.path("Tests/Gate/Programs/schema.py"), ProjectFile.path("config/mfa-backend.schema.json"),
      ]
      let run = try await ChildProcess.run(Places.tool("python3"), program + files)
      let verdicts = try run.output.map { try JSONValue(Data($0.utf8))["verdict"]?.text }
      #expect(verdicts == ["accepts", "refuses", "refuses", "refuses"], "\(run)")
    }
  }

  @Test("the shipped example is a valid configuration")
  func example() async throws {
    try await BackendInstallation.make { place in
      // The example names its keys file relative to its own folder.
      try ProjectFile.text("config/mfa-backend.yaml").write(toFile: place.file, atomically: true, encoding: .utf8)
      let run = try await place.operate("check", "--offline")
      #expect(run.exit == .code(0) && run.errors.isEmpty, "\(run)")
    }
  }
}
