import Foundation
import TestSupport
import Testing

@Suite("Several certificates", .serialized, .timeLimit(.minutes(5)))
struct CertificateChoiceTests {
  /// The DNS names of each certificate, by the name of its file, which is also its subject.
  private static let hosts = [
    "wildcard": "DNS:*.example.test", "exact": "DNS:api.example.test,DNS:www.example.org",
    "late": "DNS:api.example.test",
  ]

  private func make(_ name: String, for hosts: String, in folder: String) async throws {
    let (exit, _, errors) = try await ChildProcess.run(
      Places.tool("openssl"),
      [
        "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
        "/CN=\(name)", "-addext", "subjectAltName=\(hosts)", "-keyout", "\(folder)/\(name).key", "-out",
        "\(folder)/\(name).pem",
      ])
    #expect(exit == .code(0), "\(errors)")
  }

  /// Serves `wildcard`, `exact` and `late`, in this order, in addition to the certificate of every test's gate.
  private func serving(
    clientAuthority: String? = nil, _ body: (RunningGate) async throws -> Void
  ) async throws {
    try await Places.withTemporaryFolder { folder in
      for (name, hosts) in Self.hosts { try await make(name, for: hosts, in: folder) }
      let further = ["wildcard", "exact", "late"].map { "{ cert_file: \($0).pem, key_file: \($0).key }" }
      let gate = try await RunningGate(
        GateConfiguration(
          clientAuthority: clientAuthority, tlsExtras: ["certificates: [\(further.joined(separator: ", "))]"],
          sections: ["admin: { listen: \"unix:\(folder)/admin.sock\" }"]),
        in: folder)
      defer { gate.process.kill() }
      try await body(gate)
    }
  }

  /// Returns the common name of the certificate that a client receives for `host`; `nil` sends no server name.
  private func subject(of gate: RunningGate, for host: String?, version: String = "-tls1_3") async throws -> String? {
    let name = host.map { "-servername '\($0)'" } ?? "-noservername"
    let (_, output, _) = try await ChildProcess.run(
      "/bin/sh",
      [
        "-c",
        "openssl s_client -connect 127.0.0.1:\(gate.port) \(name) \(version) </dev/null 2>/dev/null"
          + " | openssl x509 -noout -subject -nameopt sep_multiline",
      ])
    return output.first { $0.contains("CN=") }?.trimmingCharacters(in: .whitespaces).dropFirst(3).description
  }

  @Test(
    "A gate serves the certificate for the requested name: an exact match before a wildcard, or else the first",
    arguments: ["-tls1_2", "-tls1_3"])
  func choice(version: String) async throws {
    try await serving { gate in
      let first = try #require(await subject(of: gate, for: nil, version: version))
      for (host, name) in [
        ("api.example.test", "exact"), ("API.Example.Test", "exact"), ("www.example.org", "exact"),
        ("chat.example.test", "wildcard"), ("a.b.example.test", first), ("example.test", first), ("wildcard", first),
        ("example.org", first), ("localhost", first),
      ] {
        #expect(try await subject(of: gate, for: host, version: version) == name, "\(host)")
      }
    }
  }

  @Test("A gate requests client certificates with each certificate and verifies them with the same authority")
  func clientCertificates() async throws {
    try await Places.withTemporaryFolder { certificates in
      let (exit, _, errors) = try await PythonProgram.certificates.finish([certificates])
      #expect(exit == .code(0), "\(errors)")
      try await serving(clientAuthority: certificates + "/authority.pem") { gate in
        for host in ["api.example.test", "chat.example.test", "localhost"] {
          for (shown, isLetIn) in [(ShownCertificate.none, true), (.good, true), (.otherAuthority, false)] {
            // RawClient cannot be used here: it trusts only the test's authority.
            let process = try ChildProcess(
              Places.tool("openssl"),
              ["s_client", "-quiet", "-connect", "127.0.0.1:\(gate.port)", "-servername", host]
                + shown.arguments(in: certificates))
            defer { process.kill() }
            process.write(Array("GET /attest/challenge HTTP/1.1\r\nHost: \(host)\r\n\r\n".utf8))
            let line = try? await process.output.first("an answer") { $0.hasPrefix("HTTP/1.1 ") }
            #expect((line?.hasPrefix("HTTP/1.1 200") == true) == isLetIn, "\(host) \(shown)")
          }
        }
      }
    }
  }

  @Test("A renewed additional certificate is reloaded without a restart")
  func renewed() async throws {
    try await serving { gate in
      #expect(try await subject(of: gate, for: "new.example.net") != "exact")
      try await make("exact", for: "DNS:new.example.net", in: gate.folder)
      _ = try await gate.log.first("the new certificate") { $0.message == "certificate reloaded" }
      #expect(try await subject(of: gate, for: "new.example.net") == "exact")
      #expect(try await subject(of: gate, for: "api.example.test") == "late")
    }
  }

  @Test("The status command and the metrics report the expiry of each certificate")
  func ends() async throws {
    try await serving { gate in
      let (exit, output, errors) = try await ChildProcess.run(
        Places.product("sallyport"), ["status", "-c", gate.folder + "/gate.yaml"], environment: .gateless)
      #expect(exit == .code(0), "\(errors)")
      let lines = output.filter { $0.contains("expires in") }
      #expect(lines.count == 4 && lines.allSatisfy { $0.contains("certificate  ") }, "\(output)")
      for name in Self.hosts.keys { #expect(lines.contains { $0.contains("(CN=\(name))") }, "\(lines)") }
      let (_, metrics, _) = try await ChildProcess.run(
        Places.tool("curl"), ["-s", "--unix-socket", gate.folder + "/admin.sock", "http://localhost/metrics"])
      for file in ["server", "server_2", "server_3", "server_4"] {
        let sample = "sallyport_certificate_expiry_timestamp_seconds{file=\"\(file)\"} "
        #expect(metrics.contains { $0.hasPrefix(sample) }, "\(file)")
      }
    }
  }

  @Test("A gate does not start with an additional key that every user can read")
  func readable() async throws {
    try await serving { gate in
      try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: gate.folder + "/late.key")
      let (exit, _, errors) = try await ChildProcess.run(
        Places.product("sallyport"), ["check", "-c", gate.folder + "/gate.yaml"], environment: .gateless)
      #expect(exit == .code(78))
      let fault = "tls.certificates[2].key_file: every user of this machine can read"
      #expect(errors.contains { $0.contains(fault) }, "\(errors)")
    }
  }
}
