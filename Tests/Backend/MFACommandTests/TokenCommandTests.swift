import ByteCoding
import Foundation
import MFAFixtures
import TestSupport
import Testing

@Suite("Tokens and exports of the release program", .serialized, .timeLimit(.minutes(3)))
struct TokenCommandTests {
  /// A container with one HOTP token, whose secret is that of RFC 4226, appendix D.
  private static let container = """
    <KeyContainer Version="1.0" xmlns="urn:ietf:params:xml:ns:keyprov:pskc"><KeyPackage>
    <DeviceInfo><Manufacturer>Maker</Manufacturer><SerialNo>1234567</SerialNo></DeviceInfo>
    <Key Id="k" Algorithm="urn:ietf:params:xml:ns:keyprov:pskc:hotp">
    <AlgorithmParameters><ResponseFormat Length="6" Encoding="DECIMAL"/></AlgorithmParameters>
    <Data><Secret><PlainValue>MTIzNDU2Nzg5MDEyMzQ1Njc4OTA=</PlainValue></Secret></Data></Key>
    </KeyPackage></KeyContainer>
    """

  @Test("a token is imported, assigned, resynchronised, taken back and removed, and each fault has its exit code")
  func tokens() async throws {
    try await BackendInstallation.make { place in
      try await place.enrol(TestPhone(username: "ada"))
      try place.write(Self.container, toPrivate: "tokens.xml")
      let file = place.folder + "/tokens.xml"
      func tokens(_ arguments: String...) async throws -> BackendInstallation.Run {
        try await ChildProcess.run(
          Places.product("mfa-backend"), ["admin", "tokens"] + arguments + ["-c", place.file])
      }
      #expect(try await tokens("import", file, "--dry-run").output == ["would import 1 token, 0 of them assigned"])
      #expect(try await tokens("list").output.isEmpty)
      #expect(try await tokens("import", file).output == ["imported 1 token, 0 of them assigned"])
      let again = try await tokens("import", file)
      #expect(
        again.exit == .code(65)
          && again.errors == [
            "error: \(file): line 1: serial: 1234567 was imported before", "hint: nothing was imported",
          ], "\(again)")
      let unknown = try await tokens("assign", "1234567", "bob")
      #expect(unknown.exit == .code(66) && unknown.errors.first == "error: no account is named bob", "\(unknown)")
      #expect(try await tokens("assign", "1234567", "ada").output == ["assigned 1234567 to ada"])
      #expect(try await tokens("assign", "1234567", "ada").exit == .code(1))
      #expect(try await place.users() == ["ada devices=1 mfa"])
      // Counters 5 and 6 of the RFC's appendix D.
      let wrong = try await tokens("resync", "1234567", "254676", "287921")
      #expect(wrong.exit == .code(1) && wrong.errors.count == 2, "\(wrong)")
      let found = try await tokens("resync", "1234567", "254676", "287922")
      #expect(found.output == ["1234567 is in step again, at 7"], "\(found)")
      let list = try await tokens("list", "--json").output.joined()
      #expect(
        list.contains(#""serial":"1234567""#) && list.contains(#""counter":7"#) && list.contains(#""user":"ada""#)
          && !list.contains("MTIz"), "\(list)")
      #expect(try await tokens("unassign", "1234567").output == ["took 1234567 from ada"])
      #expect(try await tokens("remove", "1234567").output == ["removed 1234567"])
      #expect(try await tokens("remove", "1234567").exit == .code(66))
      let csv = "secret,user\nGEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ,ada\n"
      try place.write(csv, toPrivate: "table.csv")
      let table = try await tokens("import", place.folder + "/table.csv", "--format", "csv", "--json")
      #expect(table.output == [#"{"assigned":1,"imported":true,"tokens":1}"#], "\(table)")
      #expect(try await tokens("import", file).exit == .code(0))
      let same = try await tokens("assign", "1234567", "ada")
      let refused = "error: the account ada has an authenticator with the same secret"
      #expect(same.exit == .code(1) && same.errors.first == refused, "\(same)")
      #expect(try await place.operate("audit", "verify").exit == .code(0))
      #expect(try await place.operate("keys", "rotate").exit == .code(0))
      #expect(try await tokens("resync", "ada", "000000", "000000").exit == .code(1))
    }
  }

  @Test("options for tables are refused for a key container, and those of containers for a table")
  func optionsOfFormats() async throws {
    try await BackendInstallation.make { place in
      for (options, reason) in [
        (["--secrets", "hex"], "--secrets is for --format csv and --format json"),
        (["--format", "csv", "--key-file", "k"], "--key-file and --passphrase-file are for --format pskc"),
      ] {
        let run = try await ChildProcess.run(
          Places.product("mfa-backend"), ["admin", "tokens", "import", "tokens.xml", "-c", place.file] + options)
        #expect(run.exit == .code(64) && run.errors.joined().contains(reason), "\(run)")
      }
    }
  }

  @Test("a file of tokens may have 16 MiB, as the help says, and a larger one is refused")
  func largeFiles() async throws {
    try await BackendInstallation.make { place in
      #expect(try await place.operate("store", "migrate").exit == .code(0))
      let space = String(repeating: "\n", count: 2 << 20)
      for (format, text) in [
        ("pskc", Self.container + space),
        ("json", #"[{"secret": "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ", "serial": "1234567"}"# + space + "]"),
      ] {
        try place.write(text, toPrivate: "large")
        let run = try await place.operate(
          "admin", "tokens", "import", place.folder + "/large", "--format", format, "--dry-run")
        #expect(run.output == ["would import 1 token, 0 of them assigned"], "\(format): \(run)")
      }
      try place.write(String(repeating: " ", count: 16 << 20) + " ", toPrivate: "large")
      let refused = try await place.operate("admin", "tokens", "import", place.folder + "/large")
      #expect(refused.exit == .code(66), "\(refused)")
      let error = "error: the file of tokens \(place.folder)/large cannot be read: larger than 16MiB"
      #expect(refused.errors.first == error, "\(refused)")
    }
  }

  @Test("new entries reach the file that the configuration names, and a reload opens it again")
  func auditFile() async throws {
    try await BackendInstallation.make { place in
      let file = place.folder + "/audit.jsonl"
      try place.configure("audit: { file: audit.jsonl, file_size: 1MiB, syslog: \"udp://192.0.2.1:514\" }")
      let check = try await place.operate("check")
      #expect(
        check.output.contains("ok: audit.file: \(file) can be written; renamed from 1MiB on, 10 kept"), "\(check)")
      #expect(check.errors.contains { $0.contains("audit.syslog: names of accounts cross the network") }, "\(check)")
      #expect(!FileManager.default.fileExists(atPath: file))
      try place.configure("audit: { file: audit.jsonl }")
      try await place.serving { backend in
        while !FileManager.default.fileExists(atPath: file + ".position") {
          try await Task.sleep(for: .milliseconds(10))
        }
        let answer = try await curl(
          "POST", "http://127.0.0.1:\(backend.port ?? 0)/api/v1/mfa/enroll", TestPhone(username: "ada").enrolment(),
          ["-H", "X-Attest-Assertion: \(try await place.gate.assertion(for: .genuine()))"])
        #expect(answer.status == 200, "\(answer.text)")
        #expect(try await backend.stop() == .code(0))
      }
      // The shutdown has written the last entries.
      let exported = try await place.operate("audit", "export").output
      let copied = try String(contentsOfFile: file, encoding: .utf8).split(separator: "\n").map(String.init)
      #expect(!copied.isEmpty && copied == exported.suffix(copied.count), "\(copied)")
      #expect(copied.last?.contains("device.enrolled") == true, "\(copied)")
      try place.configure("audit: { file: missing/audit.jsonl, syslog_ca_file: ca.pem, syslog: \"http://a:1\" }")
      let faulty = try await place.operate("check", "--offline")
      #expect(faulty.exit == .code(78), "\(faulty)")
      let errors = faulty.errors.joined(separator: "\n")
      #expect(errors.contains("audit.syslog: must be unix:/path, udp://HOST:PORT, tcp://HOST:PORT or tls://HOST:PORT"))
      #expect(errors.contains("audit.syslog_ca_file: has effect for audit.syslog: tls://HOST:PORT only"), "\(errors)")
      try place.configure("audit: { file: missing/audit.jsonl }")
      let missing = try await place.operate("check", "--offline")
      #expect(missing.errors.joined().contains("audit.file: the folder of "), "\(missing)")
    }
  }
}
