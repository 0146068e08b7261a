import Cryptography
import Foundation
import SimulatedDevice
import TestSupport
import Testing

@Suite("sallyport dev", .timeLimit(.minutes(5)))
struct DevCommandTests {
  @Test("The development gate serves without its upstream, and warns that it is unreachable")
  func upstreamIsAbsent() async throws {
    try await Places.withTemporaryFolder { folder in
      let process = try ChildProcess(
        Places.product("sallyport"),
        ["dev", "--port", "0", "--upstream", "ws://127.0.0.1:1", "--folder", folder + "/dev"])
      defer { process.kill() }
      let line = try await process.errors.first("the warning") { $0.hasPrefix("warning: ") }
      #expect(line == "warning: ws://127.0.0.1:1 cannot be reached: 127.0.0.1:1: Connection refused")
    }
  }

  /// The summary of a start, by `--json`.
  private struct Summary: Decodable {
    let url: String
    let app: String
    let folder: String
    let next: String?
    let profile: String?
    let authority_fingerprint: String?
  }

  /// Starts a gate on loopback with `options`, in the folder at `path`, and returns what it printed.
  private static func start(_ options: [String], in path: String) async throws -> (ChildProcess, Summary) {
    let fixed = [
      "dev", "--address", "127.0.0.1", "--port", "0", "--profile-port", "0", "--upstream", "ws://127.0.0.1:1",
      "--folder", path, "--json",
    ]
    let process = try ChildProcess(Places.product("sallyport"), fixed + options)
    let line = try await process.output.first("the summary") { $0.hasPrefix("{") }
    return (process, try JSONDecoder().decode(Summary.self, from: Data(line.utf8)))
  }

  /// Runs a tool of the system and returns its output.
  private static func output(_ tool: String, _ arguments: String...) async throws -> String {
    let run = try await ChildProcess.run(Places.tool(tool), arguments)
    return run.output.joined(separator: "\n")
  }

  private static func status(_ url: String, _ options: String...) async throws -> String {
    let run = try await ChildProcess.run(
      Places.tool("curl"), ["-s", "-o", "/dev/null", "-w", "%{http_code} %{content_type}"] + options + [url])
    return run.output.joined()
  }

  @Test("The next command is one for a shell, whatever the folder is called", arguments: ["it's ü $HOME", "plain"])
  func next(name: String) async throws {
    try await Places.withTemporaryFolder { folder in
      let (gate, summary) = try await Self.start([], in: folder + "/" + name)
      defer { gate.kill() }
      let next = try #require(summary.next)
      let words = try await ChildProcess.run("/bin/sh", ["-c", "printf '%s\\n' \(next)"])
      #expect(words.output == ["attest", "connect", summary.url, "--authority", folder + "/" + name])
    }
  }

  @Test(
    "A folder that cannot be part of a store's URL is refused before anything is written",
    arguments: [("a#b", "#"), ("a?b", "?"), ("a\nb", "a control character")])
  func unusable(name: String, character: String) async throws {
    try await Places.withTemporaryFolder { folder in
      let refused = try await sallyport(["dev", "--folder", folder + "/" + name])
      #expect(refused.status == 64, "\(refused)")
      #expect(
        refused.errors.first
          == "error: --folder: a folder whose path has \(character) cannot hold the gate's store", "\(refused)")
      #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == [])
    }
  }

  @Test("A gate for a phone serves its CA as a profile, at one path over plain HTTP, while it runs")
  func profile() async throws {
    try await Places.withTemporaryFolder { folder in
      let path = folder + "/dev"
      let (gate, summary) = try await Self.start(
        ["--host", "localhost", "--real", "--app-id", "AAABBBCCC1.com.example.app"], in: path)
      defer { gate.kill() }
      let profile = try #require(summary.profile)
      #expect(
        profile.wholeMatch(of: /http:\/\/localhost:\d+\/[0-9a-f]{16}\/sallyport\.mobileconfig/) != nil, "\(profile)")
      #expect(try await Self.status(profile) == "200 application/x-apple-aspen-config")
      #expect(try await Self.status(profile, "-I") == "200 application/x-apple-aspen-config")
      let root = profile.split(separator: "/").prefix(2).joined(separator: "//") + "/"
      for other in [profile + "x", String(profile.dropLast()), root] {
        #expect(try await Self.status(other) == "404 text/plain", "\(other)")
      }
      #expect(try await Self.status(profile, "-d", "x") == "400 text/plain")

      // Python's plistlib reads it as a device would; its one payload is the CA, in DER.
      let script = """
        import plistlib, sys
        profile = plistlib.loads(sys.stdin.buffer.read())
        payload, = profile["PayloadContent"]
        sys.stdout.write(payload["PayloadType"] + " " + payload["PayloadContent"].hex())
        """
      let fetched = try await Self.output("curl", "-s", profile)
      let (_, read, errors) = try await ChildProcess.run(
        Places.tool("python3"), ["-c", script], input: Array(fetched.utf8))
      let authority = try AuthorityFolder(path: path).load().tlsAuthority.certificate
      let hex = authority.der.map { String(format: "%02x", $0) }.joined()
      #expect(read == ["com.apple.security.root \(hex)"], "\(errors)")
      #expect(summary.authority_fingerprint == authority.fingerprint.map { String(format: "%02x", $0) }.joined())

      // With the CA, the gate's own port is trusted under the printed name.
      let challenge = summary.url.replacingOccurrences(of: "wss:", with: "https:") + "attest/challenge"
      #expect(try await Self.status(challenge, "--cacert", path + "/tls-ca.pem").hasPrefix("200"))
      _ = try await gate.errors.first("the note") { $0 == "profile fetched by 127.0.0.1" }
      gate.send(SIGTERM)
      _ = try await gate.exit()
      #expect(try await Self.status(profile).hasPrefix("000"))
    }
  }

  @Test("With --real Apple's roots count, in environment development: a simulated device is refused")
  func real() async throws {
    try await Places.withTemporaryFolder { folder in
      let path = folder + "/dev"
      let (gate, summary) = try await Self.start(["--real", "--app-id", "AAABBBCCC1.com.example.app"], in: path)
      defer { gate.kill() }
      #expect(summary.next == nil && summary.profile == nil && summary.app == "AAABBBCCC1.com.example.app")
      let yaml = try String(contentsOfFile: path + "/sallyport.yaml", encoding: .utf8)
      #expect(yaml.contains("environments: [development]") && !yaml.contains("attestation_root_file"))
      let refused = try await ChildProcess.run(
        Places.product("attest"), ["register", summary.url, "--authority", path],
        environment: ["XDG_DATA_HOME": folder])
      #expect(refused.exit == .code(77), "\(refused)")
      #expect(refused.errors.joined().contains("chain_untrusted"), "\(refused)")
    }
  }

  @Test("The certificate is for the given host and the host names before; the CA stays the same")
  func names() async throws {
    try await Places.withTemporaryFolder { folder in
      let path = folder + "/dev"
      var authorities: Set<String?> = []
      for (host, url) in [
        ("gate.example", "wss://gate.example:"), ("192.0.2.7", "wss://192.0.2.7:"),
        ("2001:db8::7", "wss://[2001:db8::7]:"),
      ] {
        let (gate, summary) = try await Self.start(["--host", host], in: path)
        #expect(summary.url.hasPrefix(url), "\(summary)")
        #expect(summary.next == "attest connect \(summary.url) --authority \(path)")
        authorities.insert(summary.authority_fingerprint)
        gate.kill()
        _ = try await gate.exit()
      }
      #expect(authorities.count == 1)
      let names = try await Self.output(
        "openssl", "x509", "-in", path + "/server.pem", "-noout", "-ext", "subjectAltName")
      for name in [
        "DNS:localhost", "IP Address:127.0.0.1", "DNS:gate.example", "IP Address:2001:DB8:0:0:0:0:0:7",
      ] {
        #expect(names.contains(name), "\(names)")
      }
      #expect(!names.contains("192.0.2.7"), "\(names)")
    }
  }

  @Test("If the port of the profile is taken, the configuration of the folder stays as it was")
  func takenProfilePort() async throws {
    try await Places.withTemporaryFolder { folder in
      let (gate, summary) = try await Self.start(["--host", "localhost"], in: folder + "/first")
      defer { gate.kill() }
      let port = try #require(summary.profile.flatMap(URL.init(string:))?.port)
      let (other, _) = try await Self.start([], in: folder + "/second")
      other.kill()
      let file = folder + "/second/sallyport.yaml"
      let before = try String(contentsOfFile: file, encoding: .utf8)
      let refused = try await ChildProcess.run(
        Places.product("sallyport"),
        [
          "dev", "--host", "localhost", "--address", "127.0.0.1", "--port", "0", "--profile-port", "\(port)",
          "--upstream", "ws://127.0.0.1:2", "--folder", folder + "/second",
        ])
      #expect(refused.errors.first?.contains("the profile cannot be served") == true, "\(refused)")
      #expect(try String(contentsOfFile: file, encoding: .utf8) == before)
    }
  }

  @Test("On a terminal, a camera reads the profile's address from the code")
  func code() async throws {
    try await Places.withTemporaryFolder { folder in
      let command = [
        try Places.product("sallyport"), "dev", "--host", "gate.example", "--address", "127.0.0.1", "--port", "0",
        "--profile-port", "0", "--upstream", "ws://127.0.0.1:1", "--folder", folder + "/dev",
      ]
      let terminal = try ChildProcess(
        Places.tool("script"), ["-qec", command.joined(separator: " "), "/dev/null"],
        environment: ["TERM": "xterm", "COLUMNS": "80"])
      // As a person ends it; without its terminal it would take the hang-up for the order to reload.
      defer { terminal.write("\u{3}") }
      _ = try await terminal.output.first("the last line") { $0.contains("remove the profile") }
      let lines = terminal.output.lines.map { $0.trimmingCharacters(in: ["\r"]) }
      let profile = try #require(lines.first { $0.hasPrefix("profile ") }?.split(separator: " ").last)
      // Each character is two modules, one above the other; a dark module is where the block is missing.
      let rows = lines.filter { !$0.isEmpty && $0.allSatisfy { "█▀▄ ".contains($0) } }
      #expect(rows.allSatisfy { $0.count <= 80 })
      var modules: [[Bool]] = []
      for row in rows {
        modules.append(row.map { $0 == " " || $0 == "▄" })
        modules.append(row.map { $0 == " " || $0 == "▀" })
      }
      let width = try #require(modules.first?.count)
      let pixels = modules.flatMap { row in
        [[Bool]](repeating: row.flatMap { [Bool](repeating: $0, count: 4) }, count: 4).flatMap(\.self)
      }
      let bitmap =
        "P1\n\(width * 4) \(modules.count * 4)\n" + pixels.map { $0 ? "1" : "0" }.joined(separator: " ") + "\n"
      try bitmap.write(toFile: folder + "/code.pbm", atomically: true, encoding: .utf8)
      let read = try await ChildProcess.run(Places.tool("zbarimg"), ["-q", "--raw", "--nodbus", folder + "/code.pbm"])
      #expect(read.output == [String(profile)], "\(read.errors)")
      terminal.write("\u{3}")
      _ = try await terminal.exit()
    }
  }

  @Test(
    "Options that do not fit are refused, with what to write",
    arguments: [
      (["--real"], "error: --real: the app is not known"),
      (["--host", "https://gate.local"], "error: --host: https://gate.local is neither a host name nor an address"),
      (["--host", "gate.local:6200"], "error: --host: gate.local:6200 is neither a host name nor an address"),
      (["--host", "-x.local"], "error: --host: -x.local is neither a host name nor an address"),
      (["--host", "10.0.0"], "error: --host: 10.0.0 is neither a host name nor an address"),
      (
        ["--real", "--app-id", "com.example.app"],
        "error: --app-id: com.example.app is not TEAMID.bundle.id, "
          + "with ten characters of A-Z and 0-9 before the dot"
      ),
    ])
  func usage(options: [String], error: String) async throws {
    try await Places.withTemporaryFolder { folder in
      let arguments = options.count == 2 ? ["\(options[0])=\(options[1])"] : options
      let refused = try await sallyport(["dev", "--folder", folder + "/dev"] + arguments)
      #expect(refused.status == 64 && refused.isFailure, "\(refused)")
      #expect(refused.errors.first == error, "\(refused)")
      #expect(!FileManager.default.fileExists(atPath: folder + "/dev"))
    }
  }
}
