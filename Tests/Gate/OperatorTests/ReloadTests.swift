import Foundation
import GateProcesses
import GateService
import SimulatedDevice
import TestSupport
import Testing
import Transport
import TransportEngine

@Suite("A gate that is changed while it serves", .serialized, .timeLimit(.minutes(10)))
struct ReloadTests {
  /// Runs a gate with enforcement off, with an admin socket and an echo server as its upstream.
  private func serving<R>(_ body: (AdminBench) async throws -> R) async throws -> R {
    try await EchoProcess.serving { upstream in
      var plan = GatePlan()
      plan.routes = [("/", upstream)]
      plan.admin = #"{ listen: "unix:DIR/admin.sock" }"#
      plan.isEnforcing = false
      return try await GateProcess.serving(plan) { gate in
        try await body(AdminBench(gate: gate, visitor: try Visitor(to: gate)))
      }
    }
  }

  private func rewrite(_ bench: AdminBench, _ change: (String) -> String) throws {
    let file = bench.config[1]
    try change(String(contentsOfFile: file, encoding: .utf8)).write(toFile: file, atomically: true, encoding: .utf8)
  }

  private func reload(_ bench: AdminBench) async throws -> Transcript {
    try await sallyport(["reload"] + bench.config)
  }

  @Test("New settings apply to new sockets; open sockets are not affected")
  func newSettings() async throws {
    try await serving { bench in
      let old = try await bench.visitor.open()
      try rewrite(bench) { $0 + "session: { max_message: 1KiB }\n" }
      let answer = try await reload(bench)
      #expect(answer.status == 0 && answer.output == ["reloaded"])
      let large = WebSocketMessage.binary(Array(repeating: 7, count: 4096))
      #expect(try await old.exchange(large) == large)
      let new = try await bench.visitor.open()
      try await new.send(large)
      #expect(try await new.ending(since: .now).code == 1009)
    }
  }

  @Test("A broken configuration is refused with the reason and the old one stays; a corrected one applies")
  func broken() async throws {
    try await serving { bench in
      let socket = try await bench.visitor.open()
      try rewrite(bench) { $0 + "sesion: { max_message: 1KiB }\n" }
      let refused = try await reload(bench)
      #expect(refused.status == 78 && refused.isFailure)
      #expect(refused.errors.joined().contains("sesion: unknown key"))
      #expect(!refused.errors.joined().contains("reloaded: error:"), "\(refused.errors)")
      #expect(refused.errors.count == 2, "\(refused.errors)")
      let status = try await sallyport(["status"] + bench.config).output
      #expect(status.contains { $0.hasPrefix("  not reloaded   ") && $0.contains("gate.yaml:") }, "\(status)")
      #expect(try await socket.exchange(.text("a")) == .text("a"))
      #expect(try await bench.visitor.open().exchange(.text("b")) == .text("b"))
      let metrics = String(decoding: try await bench.ask("GET", "/metrics").body, as: UTF8.self)
      #expect(metrics.contains("\nsallyport_config_last_reload_successful 0\n"))
      try rewrite(bench) { $0.replacingOccurrences(of: "sesion", with: "session") }
      #expect(try await reload(bench).status == 0)
    }
  }

  @Test("Settings that need a restart stay unchanged and are named")
  func needsRestart() async throws {
    try await serving { bench in
      try rewrite(bench) { $0.replacingOccurrences(of: "loops: 2", with: "loops: 1") }
      let answer = try await reload(bench)
      #expect(answer.status == 0 && answer.errors == ["warning: changes of listen need a restart"])
      #expect(try await bench.visitor.open().exchange(.text("x")) == .text("x"))
    }
  }

  @Test("A changed token file is reported: the gate keeps the token of its start")
  func changedToken() async throws {
    try await Places.withTemporaryFolder { folder in
      let file = folder + "/token"
      func write(_ token: String) throws {
        try (token + "\n").write(toFile: file, atomically: true, encoding: .utf8)
        #expect(chmod(file, 0o600) == 0)
      }
      try write("the-token-of-the-start")
      var plan = GatePlan()
      plan.isEnforcing = false
      plan.admin = "{ listen: '127.0.0.1:\(try Places.freePort())', token_file: \(file) }"
      try await GateProcess.serving(plan) { gate in
        let config = ["-c", gate.folder.path + "/gate.yaml"]
        #expect(try await sallyport(["reload"] + config).errors == [])
        try write("another-token-than-that")
        let refused = try await sallyport(["reload"] + config)
        #expect(refused.status == 77 && refused.isFailure)
        #expect(refused.errors.last?.contains("had when the gate started") == true, "\(refused)")
        gate.process.send(SIGHUP)
        _ = try await gate.process.errors.first("the warning") {
          $0.contains("changed settings not applied: they need a restart")
            && $0.contains(#""settings":"admin.token_file""#)
        }
        try write("the-token-of-the-start")
        #expect(try await sallyport(["reload"] + config).errors == [])
      }
    }
  }

  @Test("Without an admin server the named process gets the signal; with one it is asked, and its refusal is shown")
  func process() async throws {
    try await GateProcess.serving(GatePlan()) { gate in
      let arguments = ["reload", "--yes", "-c", gate.folder.path + "/gate.yaml", "--process"]
      #expect(try await sallyport(arguments + ["\(gate.process.id)"]).status == 0)
      _ = try await gate.process.errors.first("the reload") { $0.contains("configuration reloaded") }
      #expect(try await sallyport(arguments + ["1"]).status == 64)
      let gone = try ChildProcess("/bin/true")
      _ = try await gone.exit()
      #expect(try await sallyport(arguments + ["\(gone.id)"]).status == 69)
    }
    try await serving { bench in
      try rewrite(bench) { $0 + "sesion: { max_message: 1KiB }\n" }
      let named = ["--process", "\(bench.gate.process.id)"]
      let refused = try await sallyport(["reload", "--yes"] + bench.config + named)
      #expect(refused.status == 78 && refused.errors.joined().contains("sesion: unknown key"), "\(refused)")
    }
  }

  @Test("A store that a new start would refuse is refused by a reload")
  func malformedStore() async throws {
    try await serving { bench in
      try rewrite(bench) { $0.replacing(/url: "sqlite[^"]*"/, with: #"url: "postgres://h/x?nonsense=1""#) }
      let refused = try await reload(bench)
      #expect(refused.status == 78 && refused.isFailure)
      #expect(refused.errors.joined().contains("store.url: postgres://h/x?nonsense=1: invalid URI"), "\(refused)")
    }
  }

  @Test("Reloads under 1,000 busy sockets lose no socket and no byte")
  func underLoad() async throws {
    try await serving { bench in
      let load = try ChildProcess(
        Places.product("attest"),
        [
          "load", "wss://localhost:\(bench.gate.port)/", "--ca", bench.gate.folder.tlsAuthorityPath, "--open",
          "-c", "1000", "-d", "6s", "--verify", "--json",
        ])
      defer { load.kill() }
      var reloads = 0
      while !load.hasEnded {
        bench.gate.process.send(SIGHUP)
        #expect(try await reload(bench).status == 0)
        reloads += 1
      }
      #expect(try await load.exit(within: .seconds(60)) == .code(0))
      struct Report: Decodable {
        let count: Int
        let losses: Int
        let mismatches: Int
        let connections: Int
      }
      let text = try await load.output.text()
      let report = try JSONDecoder().decode(Report.self, from: Data(text.utf8))
      #expect(report.losses == 0 && report.mismatches == 0 && report.connections == 1000)
      #expect(report.count > 1000 && reloads > 3)
    }
  }

  // MARK: Certificates

  private func fingerprint(of bench: AdminBench) async throws -> String {
    let script =
      "openssl s_client -connect 127.0.0.1:\(bench.gate.port) </dev/null 2>/dev/null | openssl x509 -noout -fingerprint"
    let (exit, output, _) = try await ChildProcess.run("/bin/sh", ["-c", script])
    #expect(exit == .code(0))
    return try #require(output.first)
  }

  /// Replaces the gate's certificate and key with new ones, one file after the other.
  private func renew(_ bench: AdminBench) async throws {
    let folder = bench.gate.folder
    let (exit, _, _) = try await ChildProcess.run(
      "/usr/bin/openssl",
      [
        "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
        "/CN=renewed", "-keyout", folder.serverKeyPath, "-out", folder.serverCertificatePath,
      ])
    #expect(exit == .code(0))
  }

  @Test("A renewed certificate is served within seconds, and open sockets are not affected")
  func renewed() async throws {
    try await serving { bench in
      let socket = try await bench.visitor.open()
      let before = try await fingerprint(of: bench)
      try await renew(bench)
      _ = try await bench.gate.process.errors.first("the new certificate") { $0.contains("certificate reloaded") }
      #expect(try await fingerprint(of: bench) != before)
      #expect(try await socket.exchange(.text("still here")) == .text("still here"))
    }
  }

  @Test("A fault of the store in the configuration does not keep an operator from a gate that runs")
  func brokenStore() async throws {
    try await serving { bench in
      try rewrite(bench) { $0.replacing("store: { url: ", with: "store: { uri: x, url: ") }
      #expect(try await sallyport(["status"] + bench.config).status == 0)
      #expect(try await sallyport(["sessions", "list"] + bench.config).status == 0)
      #expect(try await sallyport(["keys", "list"] + bench.config).status == 0)
      #expect(try await sallyport(["keys", "export", "-"] + bench.config).status == 78)
      #expect(try await reload(bench).status == 78)
    }
  }

  @Test("A pipe in place of a certificate blocks nothing, and a valid file that replaces it is served")
  func pipe() async throws {
    try await serving { bench in
      let (before, path) = (try await fingerprint(of: bench), bench.gate.folder.serverCertificatePath)
      try FileManager.default.removeItem(atPath: path)
      try #require(mkfifo(path, 0o600) == 0)
      _ = try await bench.gate.process.errors.first("the refusal") {
        $0.contains("certificate reload failed") && $0.contains("is not a regular file")
      }
      let ready = try await bench.ask("GET", "/readyz?verbose")
      #expect(ready.status == 200 && ready.text.contains("[+] certificates: WARNING: "), "\(ready.text)")
      #expect(try await bench.ask("GET", "/metrics").status == 200)
      #expect(try await sallyport(["status"] + bench.config).status == 0)
      let refused = try await reload(bench)
      #expect(refused.status == 78 && refused.errors.joined().contains("not a regular file"), "\(refused)")
      #expect(try await fingerprint(of: bench) == before)
      try FileManager.default.removeItem(atPath: path)
      try await renew(bench)
      _ = try await bench.gate.process.errors.first("the new certificate") { $0.contains("certificate reloaded") }
      #expect(try await fingerprint(of: bench) != before)
      #expect(try await bench.ask("GET", "/readyz?verbose").text.contains("[+] certificates: ok"))

      try FileManager.default.removeItem(atPath: path)
      try #require(mkfifo(path, 0o600) == 0)
      bench.gate.process.send(SIGTERM)
      #expect(try await bench.gate.process.exit(within: .seconds(20)) == .code(0))
    }
  }

  @Test("If the store is deleted under a running gate, the gate is not ready, refuses new sockets and logs it")
  func deletedStore() async throws {
    try await EchoProcess.serving { upstream in
      var plan = GatePlan()
      plan.routes = [("/", upstream)]
      plan.admin = #"{ listen: "unix:DIR/admin.sock" }"#
      try await GateProcess.serving(plan) { gate in
        let bench = AdminBench(gate: gate, visitor: try Visitor(to: gate))
        #expect(try await bench.ask("GET", "/readyz").status == 200)
        let (path, aside) = (gate.folder.path + "/state.db", gate.folder.path + "/aside.db")
        try FileManager.default.moveItem(atPath: path, toPath: aside)
        _ = try await gate.process.errors.first("the line of the log") {
          $0.contains("store unavailable: new sessions are refused") && $0.contains("was deleted or replaced")
        }
        let answer = try await bench.ask("GET", "/readyz?verbose")
        #expect(answer.status == 503 && answer.text.contains("[-] store: failing since"), "\(answer.text)")
        #expect(!FileManager.default.fileExists(atPath: path))
        try FileManager.default.moveItem(atPath: aside, toPath: path)
        _ = try await gate.process.errors.first("the recovery") { $0.contains("store available again") }
        #expect(try await bench.ask("GET", "/readyz").status == 200)
      }
    }
  }

  @Test("A key of another certificate changes nothing and is logged")
  func strayKey() async throws {
    try await serving { bench in
      let before = try await fingerprint(of: bench)
      let certificate = try String(contentsOfFile: bench.gate.folder.serverCertificatePath, encoding: .utf8)
      try await renew(bench)
      try certificate.write(toFile: bench.gate.folder.serverCertificatePath, atomically: true, encoding: .utf8)
      _ = try await bench.gate.process.errors.first("the refusal") {
        $0.contains("certificate reload failed") && $0.contains("is not the key of the certificate")
      }
      #expect(try await fingerprint(of: bench) == before)
    }
  }

  @Test("A renewed certificate does not clear the error of a refused configuration, and vice versa")
  func twoFaults() async throws {
    try await serving { bench in
      func report() async throws -> (status: GateStatus, isCurrent: Bool) {
        let answer = try await bench.ask("GET", "/v1/status")
        let metrics = try await bench.ask("GET", "/metrics").text
        return (
          try #require(AdminJSON.value(GateStatus.self, in: answer.body)),
          metrics.contains("\nsallyport_config_last_reload_successful 1\n")
        )
      }
      try rewrite(bench) { $0 + "sesion: { max_message: 1KiB }\n" }
      #expect(try await reload(bench).status == 78)
      try await renew(bench)
      _ = try await bench.gate.process.errors.first("the new certificate") { $0.contains("certificate reloaded") }
      let renewed = try await report()
      #expect(renewed.status.configuration.fault?.contains("sesion") == true && !renewed.isCurrent)
      #expect(renewed.status.certificateFault == nil)

      try "no key".write(toFile: bench.gate.folder.serverKeyPath, atomically: false, encoding: .utf8)
      _ = try await bench.gate.process.errors.first("the refusal") {
        $0.contains("certificate reload failed")
      }
      let both = try await report()
      #expect(both.status.configuration.fault?.contains("sesion") == true)
      #expect(both.status.certificateFault?.isEmpty == false && !both.isCurrent)
      let lines = try await sallyport(["status"] + bench.config).output
      for row in ["  not loaded ", "  not reloaded "] { #expect(lines.contains { $0.hasPrefix(row) }, "\(lines)") }
      #expect(try await bench.ask("GET", "/status").text.contains("A changed certificate cannot be used"))

      try rewrite(bench) { $0.replacingOccurrences(of: "sesion", with: "session") }
      try await renew(bench)
      #expect(try await reload(bench).status == 0)
      let repaired = try await report()
      #expect(repaired.isCurrent && repaired.status.configuration.current && repaired.status.certificateFault == nil)
    }
  }

  @Test("Operators see the served certificate, and a note if its file contains another one")
  func servedCertificate() async throws {
    try await serving { bench in
      func report() async throws -> (certificate: GateStatus.CertificateState, metric: Double) {
        let answer = try await bench.ask("GET", "/v1/status")
        let status = try #require(AdminJSON.value(GateStatus.self, in: answer.body))
        let name = "sallyport_certificate_expiry_timestamp_seconds{file=\"server\"} "
        let lines = try await bench.ask("GET", "/metrics").text.split(separator: "\n")
        let line = try #require(lines.first { $0.hasPrefix(name) })
        return (try #require(status.certificates.first), try #require(Double(line.dropFirst(name.count))))
      }
      let (before, expiry) = try await report()
      #expect(before.isFileServed)
      let key = try String(contentsOfFile: bench.gate.folder.serverKeyPath, encoding: .utf8)
      try await renew(bench)
      let renewedKey = try String(contentsOfFile: bench.gate.folder.serverKeyPath, encoding: .utf8)
      // The certificate is the new one, valid for two days; the key belongs to the old one.
      try key.write(toFile: bench.gate.folder.serverKeyPath, atomically: false, encoding: .utf8)
      _ = try await bench.gate.process.errors.first("the refusal") {
        $0.contains("certificate reload failed")
      }
      let (refused, sameExpiry) = try await report()
      #expect(refused.subject == before.subject && refused.endsAt == before.endsAt && sameExpiry == expiry)
      #expect(!refused.isFileServed)
      let status = try await sallyport(["status"] + bench.config)
      #expect(status.output.contains { $0.hasPrefix("  NOT SERVED") && $0.contains("server") }, "\(status.output)")
      #expect(try await bench.ask("GET", "/status").text.contains("its file contains another certificate"))

      try renewedKey.write(toFile: bench.gate.folder.serverKeyPath, atomically: false, encoding: .utf8)
      _ = try await bench.gate.process.errors.first("the new certificate") { $0.contains("certificate reloaded") }
      let (after, newExpiry) = try await report()
      #expect(after.isFileServed && after.subject == "CN=renewed" && newExpiry < expiry)
    }
  }

  // MARK: Draining

  @Test("A drain closes 1,000 sockets with 1001 after all pending messages, and the gate exits 0")
  func drain() async throws {
    try await serving { bench in
      // A handshake has a limit of ten seconds, so that a slow machine does not finish all of them at the same time.
      let (count, atOnce) = (Sanitizer.reduce(1000), 40)
      var sockets: [ClientWebSocket] = []
      while sockets.count < count {
        sockets += try await withThrowingTaskGroup(of: ClientWebSocket.self) { group in
          for _ in 0..<min(atOnce, count - sockets.count) { group.addTask { try await bench.visitor.open() } }
          return try await group.reduce(into: []) { $0.append($1) }
        }
      }
      // The gate has read each message that the echo server has received.
      for (number, socket) in sockets.enumerated() {
        #expect(try await socket.exchange(.text("\(number)")) == .text("\(number)"))
      }
      let answer = try await sallyport(["drain"] + bench.config)
      #expect(answer.status == 0 && answer.output == ["draining"])
      // All sockets close at the same time: the gate waits for the answer to each Close, but not indefinitely.
      let codes = try await withThrowingTaskGroup(of: UInt16?.self) { group in
        for socket in sockets { group.addTask { try await socket.ending(since: .now).code } }
        return try await group.reduce(into: []) { $0.append($1) }
      }
      #expect(codes == Array(repeating: 1001, count: count))
      #expect(try await bench.gate.process.exit(within: .seconds(30)) == .code(0))
      #expect(try await bench.gate.process.errors.all().last?.contains(#""cut_off":0"#) == true)
    }
  }

  @Test(
    "Before a drain the gate is not ready but accepts sockets for the delay; a second signal changes nothing"
  )
  func unready() async throws {
    try await serving { bench in
      // The time in which the requests below must be answered.
      try rewrite(bench) { $0 + "shutdown: { unready_delay: 5s }\n" }
      #expect(try await reload(bench).status == 0)
      #expect(try await bench.ask("GET", "/readyz").status == 200)
      bench.gate.process.send(SIGTERM)
      _ = try await bench.gate.process.errors.first("the drain") { $0.contains(#""message":"stopping""#) }
      bench.gate.process.send(SIGTERM)
      #expect(try await bench.ask("GET", "/readyz").status == 503)
      #expect(try await bench.ask("GET", "/livez").status == 200)
      let late = try await bench.visitor.open()
      #expect(try await late.exchange(.text("late")) == .text("late"))
      #expect(try await late.ending(since: .now).code == 1001)
      #expect(try await bench.gate.process.exit(within: .seconds(30)) == .code(0))
    }
  }
}
