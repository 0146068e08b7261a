import ByteCoding
import Cryptography
import Foundation
import TestSupport
import Testing
import Transport

@Suite("Forwarded requests between curl and nginx", .serialized, .timeLimit(.minutes(10)))
struct ForwardInteropTests {
  /// Starts nginx as a backend that serves and stores files, and logs the connection of each request.
  private func startNginx(in folder: String) async throws -> (process: ChildProcess, port: UInt16) {
    let port = try Places.freePort()
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map { "\($0)_temp_path \(folder)/\($0);" }
    let configuration = """
      daemon off;
      master_process off;
      pid \(folder)/nginx.pid;
      error_log stderr;
      events {}
      http {
      log_format told "$connection $request_method $status";
      access_log /dev/stdout told;
      \(temporary.joined(separator: "\n"))
      server {
        listen 127.0.0.1:\(port);
        root \(folder)/files;
        client_max_body_size 0;
        location / { dav_methods PUT DELETE; }
      }
      }
      """
    try FileManager.default.createDirectory(atPath: folder + "/files", withIntermediateDirectories: true)
    try configuration.write(toFile: folder + "/backend.conf", atomically: true, encoding: .utf8)
    let process = try ChildProcess("/usr/sbin/nginx", ["-c", folder + "/backend.conf", "-e", "stderr"])
    return (process, port)
  }

  /// Runs a gate in front of nginx, and calls `body` with a `curl` that sends a fresh assertion with each call.
  private func serving(
    _ body: (_ folder: String, _ nginx: ChildProcess, _ curl: ([String], String) async throws -> [String]) async throws
      -> Void
  ) async throws {
    try await Places.withTemporaryFolder { folder in
      let (nginx, port) = try await startNginx(in: folder)
      defer { nginx.kill() }
      let gate = try await RunningGate(
        GateConfiguration(upstream: "ws://127.0.0.1:\(port)", routeExtras: ["forward: all"]), in: folder)
      defer { gate.process.kill() }
      let visitor = try Visitor(gate)
      let device = try await visitor.registeredDevice()
      var count: UInt32 = 0
      try await body(folder, nginx) { arguments, path in
        count += 1
        let proof = try device.headers(over: await visitor.challenge(), count: count).lines.flatMap { ["-H", $0] }
        let (exit, output, errors) = try await ChildProcess.run(
          Places.tool("curl"),
          ["-sS", "--http1.1", "--cacert", gate.certificateAuthority, "-w", "%{http_code}\n"] + proof + arguments
            + ["https://localhost:\(gate.port)\(path)"], within: .seconds(120))
        #expect(exit == .code(0), "\(errors)")
        return output
      }
    }
  }

  @Test("Large downloads, uploads with a length, and chunked uploads arrive unchanged")
  func largeFiles() async throws {
    try await serving { folder, _, curl in
      let content = SecureRandom.bytes(48 << 20)
      let digest = SHA256.hash(content)
      try Data(content).write(to: URL(filePath: folder + "/files/down"))
      try Data(content).write(to: URL(filePath: folder + "/up"))
      #expect(try await curl(["-o", folder + "/out"], "/down") == ["200"])
      #expect(SHA256.hash(Array(try Data(contentsOf: URL(filePath: folder + "/out")))) == digest)
      for (name, options) in [("counted", []), ("chunked", ["-H", "Transfer-Encoding: chunked"])] {
        #expect(try await curl(["-T", folder + "/up"] + options, "/\(name)") == ["201"])
        #expect(SHA256.hash(Array(try Data(contentsOf: URL(filePath: folder + "/files/" + name)))) == digest, "\(name)")
      }
    }
  }

  @Test("Consecutive downloads share a connection to nginx; an upload has its own")
  func keepAlive() async throws {
    try await serving { folder, nginx, curl in
      try Data("small".utf8).write(to: URL(filePath: folder + "/files/small"))
      for _ in 0..<6 { #expect(try await curl([], "/small") == ["small200"]) }
      #expect(try await curl(["-I"], "/small").first?.hasPrefix("HTTP/1.1 200") == true)
      #expect(try await curl(["-X", "PUT", "-d", "new"], "/new") == ["201"])
      let lines = try await nginx.output.first(8).map { $0.split(separator: " ").map(String.init) }
      let reads = lines.filter { $0.count == 3 && $0[1] != "PUT" }
      // The exact number of connections depends on the loops that serve the requests and on the timing.
      #expect(reads.count == 7 && Set(reads.map { $0[0] }).count < 7)
      #expect(!reads.contains { $0[0] == lines.last?[0] })
    }
  }

  @Test("An error answer of nginx reaches curl unchanged")
  func refusal() async throws {
    try await serving { _, _, curl in
      let output = try await curl([], "/nothing-here")
      #expect(output.last?.hasSuffix("404") == true && output.contains { $0.contains("nginx") })
    }
  }
}
