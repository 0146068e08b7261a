import AppAttest
import AttestGate
import Foundation
import GateProcesses
import GateService
import Glibc
import SimulatedDevice
import TestSupport
import Testing
import Transport
import TransportEngine

@Suite("The admin server", .serialized, .timeLimit(.minutes(5)))
struct AdminServerTests {
  @Test("The status warns of client certificates next to a production app while they are accepted")
  func certificatesWithProduction() async throws {
    try await AdminBench.serving(
      isProduction: true, further: #"debug_mtls: { client_ca_file: "DIR/tls-ca.pem" }"#
    ) { bench in
      let open = try await bench.ask("GET", "/readyz?verbose")
      #expect(
        open.status == 200 && open.text.contains("enforcement: enforce; WARNING: client certificates admit debug"))
      #expect(try await bench.ask("GET", "/status").text.contains("client certificates admit debug builds"))
      let text = try String(contentsOfFile: bench.config[1], encoding: .utf8)
      try text.replacingOccurrences(of: "debug_mtls:", with: "# debug_mtls:")
        .write(toFile: bench.config[1], atomically: true, encoding: .utf8)
      #expect(try await bench.ask("POST", "/v1/reload").status == 200)
      #expect(try await bench.ask("GET", "/readyz?verbose").text.contains("enforcement: enforce\n"))
    }
  }

  @Test("The admin socket has mode 0600, is removed with the gate, and reports health as text and JSON")
  func socket() async throws {
    try await AdminBench.serving { bench in
      let attributes = try FileManager.default.attributesOfItem(atPath: bench.socket)
      #expect(attributes[.posixPermissions] as? Int == 0o600)
      #expect(try await bench.ask("GET", "/livez").text == "ok\n")
      let ready = try await bench.ask("GET", "/readyz?verbose")
      #expect(ready.status == 200)
      #expect(
        ready.text
          == "[+] store: ok\n[+] listener: ok\n[+] enforcement: enforce\n[+] certificates: ok\n"
          + "[+] upstream /: not tried yet\nready\n")
      let json = try await bench.ask("GET", "/readyz?verbose", accept: "application/json")
      #expect(json.headers.first("Content-Type") == "application/json")
      #expect(
        json.text == #"{"checks":[{"detail":"ok","name":"store","ready":true},"#
          + #"{"detail":"ok","name":"listener","ready":true},"#
          + #"{"detail":"enforce","name":"enforcement","ready":true},"#
          + #"{"detail":"ok","name":"certificates","ready":true},"#
          + #"{"detail":"not tried yet","name":"upstream /","ready":true}],"ready":true}"# + "\n")
      bench.gate.process.send(SIGTERM)
      #expect(try await bench.gate.process.exit() == .code(0))
      #expect(!FileManager.default.fileExists(atPath: bench.socket))
    }
  }

  @Test(
    "With admin.group the socket has mode 0660 and that group; a group that does not exist stops the start and check")
  func group() async throws {
    // Only root may give files to a group that is not its own.
    let group = try #require(geteuid() == 0 ? getgrnam("daemon") : getgrgid(getegid())).pointee
    let (name, id) = (String(cString: group.gr_name), group.gr_gid)
    try await AdminBench.serving(admin: "{ listen: \"unix:DIR/admin.sock\", group: \(name) }") { bench in
      var status = stat()
      #expect(lstat(bench.socket, &status) == 0)
      #expect(status.st_mode & 0o777 == 0o660 && status.st_gid == id)
      let text = try String(contentsOfFile: bench.config[1], encoding: .utf8)
      try text.replacingOccurrences(of: "group: \(name)", with: "group: no-such-group")
        .write(toFile: bench.config[1], atomically: true, encoding: .utf8)
      let other = try await sallyport(["run"] + bench.config)
      #expect(other.status == 78 && other.isFailure)
      #expect(other.errors.contains("error: admin.group: there is no group no-such-group"), "\(other.errors)")
      let check = try await sallyport(["check"] + bench.config)
      #expect(check.status == 1)
      #expect(
        (check.output + check.errors).contains { $0.contains("admin.group: there is no group no-such-group") },
        "\(check.output)")
    }
  }

  @Test("/ leads to the status page")
  func root() async throws {
    try await AdminBench.serving { bench in
      let answer = try await bench.ask("GET", "/")
      #expect(answer.status == 302 && answer.headers.first("Location") == "/status")
      #expect(try await bench.ask("POST", "/").status == 405)
    }
  }

  @Test(
    "The socket of a crashed gate is replaced; for the socket of a running gate the start fails with exit status 71")
  func staleAndLive() async throws {
    try await AdminBench.serving { bench in
      try await bench.gate.crash()
      #expect(UnixSocketFile.state(at: bench.socket) == .abandoned)
      var plan = GatePlan()
      plan.admin = #"{ listen: "unix:DIR/admin.sock" }"#
      let newGate = try await GateProcess(plan, in: bench.gate.folder.path)
      defer { newGate.process.kill() }
      #expect(try await bench.ask("GET", "/livez").status == 200)

      let other = try await sallyport(["run"] + bench.config)
      #expect(other.status == 71)
      let lines = other.errors.filter { !$0.hasPrefix("{") }
      #expect(lines.first?.hasPrefix("error: admin.listen: cannot listen at unix:\(bench.socket)") == true)
      #expect(lines.last?.hasPrefix("hint: another process listens there") == true)
      #expect(try await bench.ask("GET", "/livez").status == 200)
    }
  }

  /// Opens a connection to the admin socket that says nothing.
  private static func idleConnection(to path: String) throws -> Int32 {
    let descriptor = Glibc.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
    let status = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    guard status == 0 else { throw Unexpected("connect: \(errno)") }
    return descriptor
  }

  @Test("Idle connections to the admin socket lock no operator out: the oldest ones make room")
  func idleConnections() async throws {
    try await AdminBench.serving { bench in
      let (_, hash) = try await bench.registeredPhone()
      let idle = try (0..<200).map { _ in try Self.idleConnection(to: bench.socket) }
      defer { for descriptor in idle { close(descriptor) } }
      #expect(try await bench.ask("GET", "/livez").status == 200)
      #expect(try await sallyport(["keys", "revoke", hash] + bench.config).status == 0)
      // At most 64 have a place, and those that asked took one, too.
      let ended = idle.prefix { descriptor in
        var byte = UInt8(0)
        return recv(descriptor, &byte, 1, Int32(MSG_DONTWAIT)) == 0
      }
      #expect(ended.count >= 200 - 64 && ended.count < 200, "\(ended.count)")
    }
  }

  @Test("A file that is not a socket is not replaced")
  func occupied() async throws {
    try await AdminBench.serving { bench in
      try await bench.gate.crash()
      try FileManager.default.removeItem(atPath: bench.socket)
      try Data("mine".utf8).write(to: URL(fileURLWithPath: bench.socket))
      let other = try await sallyport(["run"] + bench.config)
      #expect(other.status == 71)
      #expect(try String(contentsOfFile: bench.socket, encoding: .utf8) == "mine")
      // A command reports the file too, instead of ignoring the gate.
      #expect(try await sallyport(["keys", "list"] + bench.config).status == 69)
    }
  }

  @Test("On loopback, the admin server requires its token, and the commands send it")
  func token() async throws {
    try await Places.withTemporaryFolder { folder in
      let file = folder + "/token"
      let token = String(repeating: "0123456789abcdef", count: 4)
      try Data((token + "\n").utf8).write(to: URL(fileURLWithPath: file))
      chmod(file, 0o600)
      let port = try Places.freePort()
      let admin = "{ listen: \"127.0.0.1:\(port)\", token_file: \"\(file)\" }"
      try await AdminBench.serving(admin: admin) { bench in
        func status(_ authorization: String?) async throws -> Int { try await answer(authorization).status }
        func answer(_ authorization: String?) async throws -> Response {
          var headers = HeaderFields([.init(name: "Host", value: "localhost")])
          if let authorization { headers.append("Authorization", authorization) }
          return try await ClientEngine().connect(host: "127.0.0.1", port: port, tls: nil)
            .send("GET", "/v1/keys", headers: headers)
        }
        #expect(try await answer(nil).headers.values(of: "WWW-Authenticate") == ["Bearer"])
        #expect(try await status("bearer \(token)") == 200)
        for wrong in [nil, token, "Bearer", "Bearer \(token)0", "Bearer \(token.dropLast())", "Basic \(token)"] {
          #expect(try await status(wrong) == 401)
        }
        let (_, hash) = try await bench.registeredPhone()
        #expect(try await sallyport(["keys", "show", hash] + bench.config).output.last == "open sessions   0")
        try Data((token.reversed() + "\n").utf8).write(to: URL(fileURLWithPath: file))
        let refused = try await sallyport(["keys", "list"] + bench.config)
        #expect(refused.status == 77)
        #expect(refused.isFailure)
      }
    }
  }

  @Test("Only host names of this machine are accepted, so that a page with a rebound name can read nothing")
  func hosts() async throws {
    try await AdminBench.serving { bench in
      func answer(to host: String) async throws -> Response {
        try await ClientEngine().connect(socket: bench.socket)
          .send("GET", "/v1/keys", headers: HeaderFields([.init(name: "Host", value: host)]))
      }
      for host in ["localhost", "LOCALHOST:8080", "gate.localhost", "127.0.0.1", "127.1.2.3:80", "[::1]", "[::1]:8080"]
      {
        #expect(try await answer(to: host).status == 200, "\(host)")
      }
      for host in [
        "evil.example", "evil.example:8080", "localhost.evil.example", "127.0.0.1.evil.example", "127.evil.example",
        "127.0.0.x", "127.0.0.256", "evillocalhost", "[::2]", "10.0.0.1",
      ] {
        let refused = try await answer(to: host)
        #expect(refused.status == 421 && refused.text.contains(#""code":"foreign_host""#), "\(host)")
      }
    }
  }

  @Test("The admin server is not reachable at the public port")
  func notPublic() async throws {
    try await AdminBench.serving { bench in
      for path in ["/livez", "/readyz", "/v1/keys", "/v1/sessions"] {
        let answer = try await bench.visitor.connection().send(
          "GET", path, headers: HeaderFields([.init(name: "Host", value: "localhost")]))
        // An ordinary request under the route for `/`.
        #expect(answer.status == 426)
      }
    }
  }

  @Test(
    "A token file without a valid token is a configuration error",
    arguments: ["", "short\n", "with a blank in it\n"])
  func badToken(_ text: String) async throws {
    try await Places.withTemporaryFolder { folder in
      try Data(text.utf8).write(to: URL(fileURLWithPath: folder + "/token"))
      try Data(
        """
        store: { url: "sqlite://\(folder)/state.db" }
        admin: { listen: "127.0.0.1:1", token_file: token }
        """.utf8
      ).write(to: URL(fileURLWithPath: folder + "/gate.yaml"))
      let refused = try await sallyport(["keys", "list", "-c", folder + "/gate.yaml"])
      #expect(refused.status == 78)
      #expect(refused.isFailure)
    }
  }
}
