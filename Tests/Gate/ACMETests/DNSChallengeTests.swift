import ACME
import Foundation
import GateProcesses
import Locking
import SimulatedDevice
import TestSupport
import Testing
import Transport
import TransportEngine

@Suite("DNS-01 by a program and by dynamic updates", .serialized, .timeLimit(.minutes(5)))
struct DNSChallengeTests {
  /// Writes a program that changes the records of pebble's DNS server, and returns its path.
  private func hook(_ bench: PebbleGate) throws -> String {
    let file = bench.path + "/record"
    try """
    #!/bin/sh
    echo "$1 $2" >>"$0.calls"
    case $1 in
    present) exec curl -sf -d "{\\"host\\":\\"$2.\\",\\"value\\":\\"$3\\"}" http://127.0.0.1:\(bench.pebble.recordPort)/set-txt ;;
    cleanup) exec curl -sf -d "{\\"host\\":\\"$2.\\"}" http://127.0.0.1:\(bench.pebble.recordPort)/clear-txt ;;
    esac

    """.write(toFile: file, atomically: true, encoding: .utf8)
    try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: file)
    return file
  }

  @Test("One certificate for a name and its wildcard is obtained with a program, which also removes the records")
  func wildcard() async throws {
    try await PebbleGate.serving({ _ in }) { bench in
      let file = try hook(bench)
      let tls = bench.tls(
        "challenge: dns-01, dns: { hook: \"\(file)\", wait: 0s }", domains: "gate.example, \"*.gate.example\"")
      try await bench.run(tls) { gate in
        _ = try await gate.process.errors.first("the certificate", where: PebbleGate.isObtained)
        let root = try await bench.pebble.root(in: gate.folder)
        for name in ["gate.example", "any.gate.example"] {
          _ = try await ClientEngine().connect(
            host: "127.0.0.1", port: gate.port, tls: ClientTLS(authorityFile: root), verifying: name)
        }
        let calls = try String(contentsOfFile: file + ".calls", encoding: .utf8).split(separator: "\n")
        let name = "_acme-challenge.gate.example"
        #expect(
          calls == ["present \(name)", "present \(name)", "cleanup \(name)", "cleanup \(name)"], "\(calls)")
        #expect(!gate.process.errors.lines.contains { $0.contains("record not removed") })
        let check = try await bench.check()
        #expect(check.contains("\(file) writes the records; validation begins 0 s later"), "\(check)")
      }
    }
  }

  @Test("A program that fails is reported with its words, and what it may have written is removed")
  func failing() async throws {
    try await PebbleGate.serving({ _ in }) { bench in
      let file = try hook(bench)
      try "#!/bin/sh\necho \"$1\" >>\"$0.calls\"\necho no such zone >&2\nexit 3\n"
        .write(toFile: file, atomically: false, encoding: .utf8)
      let tls = bench.tls("challenge: dns-01, dns: { hook: \"\(file)\", wait: 0s }")
      try await bench.run(tls) { gate in
        let line = try await gate.process.errors.first("the failure") { $0.contains("certificate order failed") }
        #expect(line.contains(#""code":"record""#) && line.contains("exited with status 3: no such zone"), "\(line)")
        #expect(line.contains("tls.acme.dns.hook"))
        _ = try await gate.process.errors.first("the removal") { $0.contains("ACME challenge record not removed") }
        #expect(try String(contentsOfFile: file + ".calls", encoding: .utf8) == "present\ncleanup\n")
      }
    }
  }

  @Test("A record that the server does not see is reported with what to do")
  func unseen() async throws {
    try await PebbleGate.serving({ _ in }) { bench in
      try await bench.run(bench.tls("challenge: dns-01, dns: { hook: /bin/true, wait: 0s }")) { gate in
        let line = try await gate.process.errors.first("the failure") { $0.contains("certificate order failed") }
        #expect(line.contains("could not validate gate.example") && line.contains("tls.acme.dns.wait"), "\(line)")
      }
    }
  }

  @Test(
    "A record is written to a DNS server by signed updates, and removed; another key is refused",
    .enabled(if: DNSServer.isInstalled && DynamicUpdates.program != nil, "knot and bind9-dnsutils are not installed"))
  func updates() async throws {
    let server = try await DNSServer(zone: "example")
    defer { server.stop() }
    try await PebbleGate.serving({ $0.asksAt = server.port }) { bench in
      for (key, sign) in [("wrong", "certificate order failed"), ("right", "certificate obtained")] {
        let file = "\(bench.path)/\(key).key"
        try server.write(key: key == "right", to: file)
        let keys = "server: \"127.0.0.1:\(server.port)\", key_file: \"\(file)\", wait: 0s"
        let tls = bench.tls("challenge: dns-01, dns: { \(keys) }", domains: "gate.example, \"*.gate.example\"")
        let place = PebbleGate(pebble: bench.pebble, path: "\(bench.path)/\(key)", plan: bench.plan)
        try await place.run(tls) { gate in
          let line = try await gate.process.errors.first(sign) { $0.contains(sign) }
          let check = try await place.check()
          #expect(check.contains("nsupdate writes the records at 127.0.0.1 port \(server.port)"), "\(check)")
          guard key == "wrong" else { return }
          #expect(line.contains(#""code":"record""#) && line.contains("nsupdate at 127.0.0.1 port"), "\(line)")
          #expect(line.contains("NOTAUTH") || line.contains("BADSIG"), "\(line)")
        }
      }
      #expect(try await server.records(of: "_acme-challenge.gate.example") == "")
    }
  }
}

/// A `knotd` that serves one zone on loopback and accepts updates with a key.
private struct DNSServer {
  static let isInstalled = FileManager.default.isExecutableFile(atPath: program)
  private static let program = "/usr/sbin/knotd"
  private static let secrets = (
    right: "c2FsbHlwb3J0IHRlc3Qga2V5IHdpdGggMzIgYnl0ZXM=", wrong: "c2FsbHlwb3J0IG90aGVyIGtleSBvZiAzMiBieXRlcyE="
  )

  let port: UInt16
  private let process: ChildProcess
  private let folder: String

  init(zone: String) async throws {
    port = try Places.freePort()
    folder = Places.temporary + "knot-\(UUID().uuidString.prefix(8))"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
    try """
    $ORIGIN \(zone).
    $TTL 1
    @ SOA ns hostmaster 1 3600 600 86400 1
    @ NS ns
    ns A 127.0.0.1

    """.write(toFile: "\(folder)/zone", atomically: true, encoding: .utf8)
    try """
    server:
      listen: 127.0.0.1@\(port)
      rundir: "\(folder)"
    log:
      - target: stderr
        any: info
    control:
      listen: "\(folder)/socket"
    database:
      storage: "\(folder)"
    key:
      - id: gate
        algorithm: hmac-sha256
        secret: \(Self.secrets.right)
    acl:
      - id: update
        key: gate
        action: update
    zone:
      - domain: \(zone)
        file: "\(folder)/zone"
        zonefile-sync: -1
        acl: update

    """.write(toFile: "\(folder)/knot.conf", atomically: true, encoding: .utf8)
    process = try ChildProcess(Self.program, ["-c", "\(folder)/knot.conf"])
    _ = try await process.errors.first("the DNS server") { $0.contains("server started") }
  }

  func write(key isRight: Bool, to file: String) throws {
    let secret = isRight ? Self.secrets.right : Self.secrets.wrong
    try "key \"gate\" {\n\talgorithm hmac-sha256;\n\tsecret \"\(secret)\";\n};\n"
      .write(toFile: file, atomically: true, encoding: .utf8)
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file)
  }

  /// The TXT records of `name`, as `dig +short` shows them.
  func records(of name: String) async throws -> String {
    let answer = try await ChildProcess.run(
      Places.tool("dig"), ["@127.0.0.1", "-p", "\(port)", "+short", "+tcp", "TXT", name])
    return answer.output.joined(separator: "\n")
  }

  func stop() {
    process.kill()
    try? FileManager.default.removeItem(atPath: folder)
  }
}
