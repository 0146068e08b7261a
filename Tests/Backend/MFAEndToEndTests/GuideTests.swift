import ByteCoding
import Foundation
import GateProcesses
import MFADomain
import MFAFixtures
import SimulatedDevice
import TestSupport
import Testing

@Suite("Commands of the guide", .serialized, .timeLimit(.minutes(5)))
struct GuideTests {
  /// Returns the blocks of shell commands in a section of the guide.
  private static func blocks(of title: String) throws -> [String] {
    let guide = try ProjectFile.text("Sources/Backend/MFAService/MFAService.docc/Guide.md")
    let section = try #require(guide.components(separatedBy: "\n## \(title)\n").dropFirst().first)
    let own = section.components(separatedBy: "\n## ")[0]
    return own.components(separatedBy: "```sh\n").dropFirst().map { $0.components(separatedBy: "```")[0] }
  }

  /// Runs blocks of the guide as one script, unchanged.
  private static func run(
    _ blocks: [String], in folder: String, _ environment: [String: String?]
  ) async throws -> (exit: ChildProcess.Exit, output: [String], errors: [String]) {
    let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin"
    return try await ChildProcess.run(
      Places.tool("bash"), ["-euo", "pipefail", "-c", blocks.joined(separator: "\n")],
      environment: environment.merging(["PATH": Places.products + ":" + path]) { first, _ in first }, in: folder)
  }

  @Test("the guide's commands for operation work unchanged, and after the rotation the old key is useless")
  func operate() async throws {
    let blocks = try Self.blocks(of: "Operate")
    #expect(blocks.count == 2 && blocks[1].contains("keys rotate"))
    let gate = try TestGate(clock: .system)
    try await Places.withTemporaryFolder { folder in
      let database = "sqlite://\(folder)/mfa.db"
      let made = try await Self.run(["(umask 077; mfa-backend keys make > keys.json)"], in: folder, [:])
      #expect(made.exit == .code(0), "\(made.errors)")
      let backend = try await BackendProcess(
        ["--database", database, "--keys", folder + "/keys.json", "--listen", "127.0.0.1:0"]
          + BackendProcess.trusting(gate))
      defer { backend.process.kill() }
      let phone = TestPhone(username: "ada")
      let port = try #require(backend.port)
      let enrolled = try await MFAFixtures.curl(
        "POST", "http://127.0.0.1:\(port)/api/v1/mfa/enroll", phone.enrolment(),
        ["-H", "X-Attest-Assertion: \(try await gate.assertion(for: phone.app))"])
      #expect(enrolled.status == 200, "\(enrolled.text)")
      #expect(try await backend.stop() == .code(0))
      let old = try Data(contentsOf: URL(fileURLWithPath: folder + "/keys.json"))
      let run = try await Self.run(blocks, in: folder, ["DATABASE": database])
      #expect(run.exit == .code(0), "\(run.output) \(run.errors)")
      #expect(run.errors.isEmpty, "\(run.errors)")
      #expect(run.output.first == "ada devices=1")
      #expect(run.output.last?.hasSuffix(" data keys resealed") == true && run.output.last?.first != "0")
      #expect(
        try FileManager.default.contentsOfDirectory(atPath: folder).sorted().filter { $0.hasSuffix(".json") }
          == ["keys.json"])
      let users = ["mfa-backend admin users --database \"$DATABASE\" --keys keys.json"]
      #expect(try await Self.run(users, in: folder, ["DATABASE": database]).output == ["ada devices=0"])
      try old.write(to: URL(fileURLWithPath: folder + "/keys.json"))
      #expect(try await Self.run(users, in: folder, ["DATABASE": database]).exit == .code(78))
    }
  }

  @Test("A-198 every curl command of the guide works unchanged through a real gate")
  func curl() async throws {
    let blocks = try Self.blocks(of: "Ten minutes by curl")
    #expect(blocks.count == 10)
    // Each operation of the requirements is among them.
    let commands = blocks.joined()
    for operation in [
      "POST mfa/enroll ", "POST mfa/unenroll ", "POST mfa/upgrade ", "POST mfa/downgrade ", "POST auth/initiate ",
      "POST auth/verify-signature ", "POST auth/request-otp ", "POST auth/verify-otp ", "GET devices/", "GET device/",
    ] { #expect(commands.contains("call " + operation), "\(operation)") }
    try await BackendBehindGate.serving { servers in
      try await Places.withTemporaryFolder { folder in
        let run = try await Self.run(
          blocks, in: folder,
          [
            "GATE": servers.socketURL, "AUTHORITY": servers.gate.folder.path, "LOG": servers.log,
            "XDG_DATA_HOME": folder + "/data", "SALLYPORT_AUTHORITY": nil,
          ])
        let output = run.output.joined(separator: "\n")
        #expect(run.exit == .code(0), "\(output)\n\(run.errors.joined(separator: "\n"))")
        let texts = [
          "Device enrolled successfully", "\"enrolled\":true", "\"devices\":[", "MFA verification successful",
          "Trusted device revoked successfully", "\"pubKeyCredParams\":[", "\"keys\":[]", "Authenticator removed",
          "\"name\":\"New phone\"", "OTP sent to +1234567890",
          "linkCode", "Token refreshed",
          "Downgraded to SMS OTP", "Session revoked", "Upgraded", "Device unenrolled", "\"result\":{",
        ]
        for text in texts { #expect(output.contains(text), "\(text)") }
      }
    }
  }

  @Test("A-199 the commands of the testing guide play the ten scenarios, and print what it says")
  func scenarios() async throws {
    let guide = try ProjectFile.text("Sources/Backend/MFAService/MFAService.docc/Testing.md")
    let blocks = guide.components(separatedBy: "```sh\n").dropFirst().map { $0.components(separatedBy: "```")[0] }
    #expect(blocks.count == 7)
    for number in 1...10 {
      let id = "A-S" + (number < 10 ? "0" : "") + String(number)
      // In the table, and before a block.
      #expect(guide.contains("\n| \(id) "))
      #expect(guide.split(separator: "\n").contains { $0.hasPrefix("A-S") && $0.contains(id) }, "\(id)")
    }
    try await BackendBehindGate.serving { servers in
      try await Places.withTemporaryFolder { folder in
        // A mark before each command that the guide says something about.
        let lines = blocks.joined().split(separator: "\n").map(String.init)
        let script = lines.map { $0.contains(" # ") ? "echo '@@'\n" + $0 : $0 }
        let run = try await Self.run(
          ["exec 2>&1"] + script, in: folder,
          [
            "GATE": servers.socketURL, "AUTHORITY": servers.gate.folder.path, "LOG": servers.log,
            "XDG_DATA_HOME": folder + "/data", "SALLYPORT_AUTHORITY": nil,
          ])
        #expect(run.exit == .code(0), "\(run.output)")
        let outputs = run.output.joined(separator: "\n").components(separatedBy: "@@\n").dropFirst()
        let expected = lines.filter { $0.contains(" # ") }
        #expect(expected.count == 17 && outputs.count == expected.count)
        for (line, output) in zip(expected, outputs) {
          #expect(output.contains(line.split(separator: " # ", maxSplits: 1)[1]), "\(line)\n\(output)")
        }
      }
    }
  }
}
