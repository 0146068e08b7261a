import Foundation
import GateProcesses
import SimulatedDevice
import TestSupport
import Testing
import Transport
import TransportEngine

@Suite("HTTP-01 at a port of its own", .serialized, .timeLimit(.minutes(5)))
struct HTTPChallengeTests {
  /// Calls `body` with a pebble that reads at `port`, and the value of `tls` for it.
  private func withPebble(
    _ body: (PebbleGate, _ port: UInt16, _ tls: String) async throws -> Void
  ) async throws {
    let port = try Places.freePort()
    try await PebbleGate.serving({ $0.readsAt = port }) { bench in
      let keys = "challenge: http-01, http_listen: \"127.0.0.1:\(port)\""
      try await body(bench, port, bench.tls(keys, domains: "gate.example, 127.0.0.1"))
    }
  }

  private func ask(
    _ port: UInt16, _ target: String, method: String = "GET", host: String = "gate.example"
  ) async throws -> Response {
    try await ClientEngine().connect(host: "127.0.0.1", port: port, tls: nil)
      .send(method, target, headers: HeaderFields([.init(name: "Host", value: host)]))
  }

  @Test("A gate obtains a certificate for a name and an address, and redirects to its own names alone")
  func obtained() async throws {
    try await withPebble { bench, port, tls in
      try await bench.run(tls) { gate in
        _ = try await gate.process.errors.first("the certificate", where: PebbleGate.isObtained)
        let root = try await bench.pebble.root(in: gate.folder)
        for name in ["gate.example", "127.0.0.1"] {
          _ = try await ClientEngine().connect(
            host: "127.0.0.1", port: gate.port, tls: ClientTLS(authorityFile: root), verifying: name)
        }
        for (target, host, location) in [
          ("/", "gate.example", "https://gate.example/"),
          ("/a?b=%20c", "GATE.example:80", "https://gate.example/a?b=%20c"),
          ("/c", "127.0.0.1:\(port)", "https://127.0.0.1/c"),
        ] {
          let answer = try await ask(port, target, host: host)
          #expect(answer.status == 308 && answer.headers.first("Location") == location, "\(answer)")
        }
        for host in ["evil.example", "gate.example.evil.example", "evil.example:gate.example", "[::1]"] {
          let answer = try await ask(port, "/", host: host)
          #expect([400, 421].contains(answer.status) && answer.headers.first("Location") == nil, "\(host): \(answer)")
        }
        let check = try await bench.check()
        #expect(check.contains("port 80 of gate.example, 127.0.0.1 must lead to 127.0.0.1:\(port)"), "\(check)")
        #expect(try await ask(port, "//evil.example/").headers.first("Location") == nil)
        // The challenge is over.
        #expect(try await ask(port, "/.well-known/acme-challenge/token").status == 404)
        #expect(try await ask(port, "/.well-known/acme-challenge/token", method: "POST").status == 405)
        #expect(try await ask(port, "/", method: "POST").status == 308)
      }
    }
  }

  @Test("A validation that does not reach the listener is reported with what to do")
  func unreached() async throws {
    let port = try Places.freePort()
    try await PebbleGate.serving({ $0.readsAt = 1 }) { bench in
      try await bench.run(bench.tls("challenge: http-01, http_listen: \"127.0.0.1:\(port)\"")) { gate in
        let line = try await gate.process.errors.first("the failure") { $0.contains("certificate order failed") }
        #expect(line.contains("could not validate gate.example") && line.contains("tls.acme.http_listen"), "\(line)")
      }
    }
  }

  @Test("A reload opens and closes the listener; a port in use keeps the old settings; an upgrade hands it over")
  func reloaded() async throws {
    try await withPebble { bench, port, tls in
      let other = try Places.freePort()
      try await bench.run(bench.tls("challenge: tls-alpn-01")) { gate in
        let file = bench.path + "/gate/gate.yaml"
        let text = try String(contentsOfFile: file, encoding: .utf8)
        func reload(_ tls: String) async throws -> (exit: ChildProcess.Exit, errors: [String]) {
          let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
          try lines.map { $0.hasPrefix("tls:") ? "tls: \(tls)" : String($0) }.joined(separator: "\n")
            .write(toFile: file, atomically: true, encoding: .utf8)
          let answer = try await ChildProcess.run(Places.product("sallyport"), ["reload", "-c", file])
          return (answer.exit, answer.errors)
        }
        await #expect(throws: ClientError.self) { try await ask(port, "/") }
        let taken = try await reload(
          bench.tls("challenge: http-01, http_listen: \"127.0.0.1:\(bench.pebble.port)\""))
        #expect(taken.exit != .code(0))
        #expect(taken.errors.joined().contains("tls.acme.http_listen: cannot listen"), "\(taken)")
        #expect(try await reload(tls).exit == .code(0))
        _ = try await gate.process.errors.first("the certificate", where: PebbleGate.isObtained)
        #expect(try await ask(port, "/").status == 308)
        let moved = tls.replacingOccurrences(of: ":\(port)", with: ":\(other)")
        #expect(try await reload(moved).exit == .code(0))
        #expect(try await ask(other, "/").status == 308)
        await #expect(throws: ClientError.self) { try await ask(port, "/") }
        let upgrade = try await ChildProcess.run(Places.product("sallyport"), ["upgrade", "--json", "-c", file])
        let next = upgrade.output.joined().firstMatch(of: /"process":\s*([0-9]+)/).flatMap { pid_t($0.1) }
        let process = try #require(next, "\(upgrade)")
        defer { kill(process, SIGKILL) }
        _ = try await gate.process.exit(within: .seconds(30))
        #expect(try await ask(other, "/").status == 308)
      }
    }
  }
}
