import Foundation
import Glibc
import TestSupport
import Testing

@Suite("A gate as a service", .serialized, .timeLimit(.minutes(2)))
struct ServiceTests {
  @Test("A gate reports to its manager that it is ready and alive, and at SIGTERM that it stops")
  func notifications() async throws {
    try await Places.withTemporaryFolder { folder in
      let manager = try ServiceManager(in: folder)
      try RunningGate.prepare(folder)
      let environment = [String: String?].gateless.merging(
        ["NOTIFY_SOCKET": manager.path, "WATCHDOG_USEC": "400000", "WATCHDOG_PID": nil]) { $1 }
      let process = try ChildProcess(
        Places.product("sallyport"), ["run", "-c", folder + "/gate.yaml"], environment: environment, in: folder)
      defer { process.kill() }
      var messages: Set<String> = []
      while !messages.isSuperset(of: ["READY=1\nSTATUS=serving", "WATCHDOG=1"]) {
        messages.insert(try #require(await manager.next()))
      }
      // The gate listens before it reports that it is ready.
      #expect(try await GateLog(lines: process.errors).listeningPort() > 0)
      process.send(SIGTERM)
      let last = try #require(await manager.news())
      #expect(last == "STOPPING=1\nSTATUS=closing its sockets")
      #expect(try await process.exit() == .code(0))
    }
  }
}

extension ServiceTests {
  @Test("A gate reports the new process of a graceful upgrade to its manager; that process sends the notifications")
  func handOver() async throws {
    try await Places.withTemporaryFolder { folder in
      let manager = try ServiceManager(in: folder)
      try RunningGate.prepare(folder)
      // The watchdog must also apply to the new process, although the id in the variable is not its own.
      let environment = [String: String?].gateless.merging(
        ["NOTIFY_SOCKET": manager.path, "WATCHDOG_USEC": "400000", "WATCHDOG_PID": nil]) { $1 }
      let process = try ChildProcess(
        Places.product("sallyport"), ["run", "-c", folder + "/gate.yaml"], environment: environment, in: folder)
      defer { process.kill() }
      while try #require(await manager.next()) != "READY=1\nSTATUS=serving" {}
      process.send(SIGUSR2)
      let named = try #require(await manager.news())
      let id = try #require(named.split(separator: "\n").first?.split(separator: "=").last.flatMap { pid_t($0) })
      defer { kill(id, SIGKILL) }
      #expect(named == "MAINPID=\(id)\nREADY=1\nWATCHDOG=1\nSTATUS=serving" && id != process.id)
      #expect(try await process.exit() == .code(0))
      // The old process has exited, so all messages come from the new one.
      #expect(await manager.next() == "WATCHDOG=1")
      kill(id, SIGHUP)
      let reloading = try #require(await manager.news())
      #expect(reloading.hasPrefix("RELOADING=1\n"))
      kill(id, SIGTERM)
      var last = try #require(await manager.news())
      while last != "STOPPING=1\nSTATUS=closing its sockets" { last = try #require(await manager.news()) }
      // The new process logs to the same place as the old one, until it exits.
      #expect(try await process.errors.all().filter { $0.contains(#""message":"stopped""#) }.count == 2)
    }
  }

  /// Returns whether the process ignores all of `signals`, as proc(5) shows.
  private static func ignores(_ signals: [Int32], _ id: pid_t) throws -> Bool {
    let status = try String(contentsOfFile: "/proc/\(id)/status", encoding: .utf8)
    let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("SigIgn:") })
    let mask = try #require(UInt64(line.dropFirst("SigIgn:".count).drop { $0 == "\t" }, radix: 16))
    return signals.allSatisfy { mask & 1 << UInt64($0 - 1) != 0 }
  }

  @Test("A gate survives SIGHUP and SIGUSR2 before it has read its configuration")
  func signalsAtTheStart() async throws {
    try await Places.withTemporaryFolder { folder in
      try RunningGate.prepare(folder)
      let process = try ChildProcess(
        Places.product("sallyport"), ["run", "-c", "/dev/stdin"], environment: .gateless, in: folder)
      defer { process.kill() }
      let deadline = ContinuousClock.now + .seconds(20)
      while try !Self.ignores([SIGHUP, SIGUSR2], process.id) {
        try #require(ContinuousClock.now < deadline, "the signals are not ignored")
        try await Task.sleep(for: .milliseconds(1))
      }
      for signal in [SIGHUP, SIGUSR2] { process.send(signal) }
      // Relative paths in the file are relative to its folder, which a pipe does not have.
      let configuration = try String(contentsOfFile: folder + "/gate.yaml", encoding: .utf8)
      process.write(configuration.replacing("_file: ", with: "_file: \(folder)/"))
      process.closeInput()
      #expect(try await GateLog(lines: process.errors).listeningPort() > 0)
      process.send(SIGTERM)
      #expect(try await process.exit() == .code(0))
    }
  }

  /// Does what systemd does for a socket unit: opens the socket and executes the gate.
  private static let activator = """
    import os, socket, sys
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    os.dup2(listener.fileno(), 3)
    os.set_inheritable(3, True)
    os.environ["LISTEN_PID"], os.environ["LISTEN_FDS"] = str(os.getpid()), "1"
    os.execv(sys.argv[1], sys.argv[1:])
    """

  @Test("A gate serves at an inherited socket, independent of the configured address")
  func activation() async throws {
    try await Places.withTemporaryFolder { folder in
      try RunningGate.prepare(folder)
      let process = try ChildProcess(
        Places.tool("python3"),
        ["-c", Self.activator, Places.product("sallyport"), "run", "-c", folder + "/gate.yaml"], environment: .gateless,
        in: folder)
      defer { process.kill() }
      let port = try #require(UInt16(try await process.output.first("the port") { _ in true }))
      // Connections wait in the queue until the gate accepts them.
      let (exit, answer, errors) = try await ChildProcess.run(
        Places.tool("curl"),
        ["-sS", "--cacert", folder + "/tls-ca.pem", "https://localhost:\(port)/attest/challenge"])
      #expect(exit == .code(0) && answer.joined().contains("nonce"), "\(errors)")
      #expect(try await GateLog(lines: process.errors).listeningPort() == port)
    }
  }

  @Test("An upgrade at an inherited socket warns of no port if the configuration names none")
  func upgradeAtInheritedSocket() async throws {
    try await Places.withTemporaryFolder { folder in
      try RunningGate.prepare(folder)
      let file = folder + "/gate.yaml"
      try String(contentsOfFile: file, encoding: .utf8).replacing(/(?m)^listen: .*\n/, with: "")
        .write(toFile: file, atomically: true, encoding: .utf8)
      let process = try ChildProcess(
        Places.tool("python3"), ["-c", Self.activator, Places.product("sallyport"), "run", "-c", file],
        environment: .gateless, in: folder)
      defer { process.kill() }
      _ = try await process.output.first("the port") { _ in true }
      _ = try await GateLog(lines: process.errors).listeningPort()
      process.send(SIGUSR2)
      let line = try await process.errors.first("the upgrade") { $0.contains(#""message":"upgrade completed""#) }
      let id = try #require(
        line.components(separatedBy: #""process":"#).last.flatMap { pid_t($0.prefix(while: \.isNumber)) })
      defer { kill(id, SIGKILL) }
      #expect(try await process.exit() == .code(0))
      kill(id, SIGTERM)
      // The new process warns before it is ready.
      #expect(try await !process.errors.all().contains { $0.contains("listening port unchanged") })
    }
  }
}

@Suite("sallyport ca", .serialized, .timeLimit(.minutes(3)))
struct CACommandTests {
  private func ca(
    _ arguments: String..., in folder: String
  ) async throws -> (exit: ChildProcess.Exit, output: [String], errors: [String]) {
    try await ca(arguments, in: folder)
  }

  private func ca(
    _ arguments: [String], in folder: String
  ) async throws -> (exit: ChildProcess.Exit, output: [String], errors: [String]) {
    // setsid: without a terminal the command cannot ask for a password.
    try await ChildProcess.run(
      Places.tool("setsid"), ["--wait", Places.product("sallyport"), "ca"] + arguments, in: folder)
  }

  @Test("The command creates a certificate that admits a client, from its files and from an export")
  func opens() async throws {
    let backend = try await EchoBackend()
    try await Places.withTemporaryFolder { folder in
      #expect(
        try await ca("init", "--organization", "YourOrg", in: folder).output == [
          "config/client-ca/ca.pem", "config/client-ca/ca.key",
        ])
      #expect(
        try await ca("issue", "--json", in: folder).output == [
          #"{"files":["config/client-ca/client.crt","config/client-ca/client.key"]}"#
        ])
      #expect(try await ca("export", "--format", "pem", in: folder).exit == .code(0))
      let gate = try await RunningGate(
        GateConfiguration(upstream: backend.upstream, clientAuthority: "config/client-ca/ca.pem"), in: folder)
      defer { gate.process.kill() }
      let files = folder + "/config/client-ca/"
      for (certificate, key) in [("client.crt", "client.key"), ("client.pem", "client.pem")] {
        let (exit, output, errors) = try await ChildProcess.run(
          Places.product("attest"),
          [
            "connect", gate.url, "--ca", gate.certificateAuthority, "--cert", files + certificate, "--key", files + key,
            "--once", "hello",
          ], environment: .gateless, within: .seconds(20))
        #expect(exit == .code(0) && output == ["hello"], "\(errors)")
      }
      #expect(try await backend.firstHeaders()["x-attest-method"] == "mtls")
    }
  }

  @Test("The command reports errors with a hint and an exit code")
  func faults() async throws {
    try await Places.withTemporaryFolder { folder in
      #expect(try await ca("issue", in: folder).exit == .code(66))
      _ = try await ca("init", in: folder)
      let again = try await ca("init", in: folder)
      #expect(again.exit == .code(73) && again.errors.first == "error: config/client-ca/ca.pem already exists")
      #expect(again.errors.last?.hasPrefix("hint: --force") == true)
      _ = try await ca("issue", in: folder)
      let unasked = try await ca("export", "--format", "p12", in: folder)
      #expect(
        unasked.exit == .code(64)
          && unasked.errors.first == "error: no terminal to ask for the password")
      let empty = try await ca("export", "--format", "p12", "--password-file", "/dev/null", in: folder)
      #expect(empty.exit == .code(0) && empty.output == ["config/client-ca/client.p12"])
    }
  }

  @Test("--force is an option of the commands that create files: revoke always replaces its list")
  func force() async throws {
    try await Places.withTemporaryFolder { folder in
      for command in [["init"], ["issue"], ["export", "--format", "pem"]] {
        let created = try await ca(command, in: folder)
        let again = try await ca(command + ["--force"], in: folder)
        #expect(created.exit == .code(0) && again.exit == .code(0), "\(again.errors)")
      }
      let refused = try await ca("revoke", "--force", in: folder)
      #expect(refused.exit == .code(64), "\(refused.errors)")
      for _ in 0..<2 {
        let revoked = try await ca("revoke", "client", in: folder)
        #expect(revoked.exit == .code(0), "\(revoked.errors)")
      }
    }
  }

  @Test("A subject whose names are empty or longer than X.509 allows is refused, and no file is written")
  func nameLengths() async throws {
    try await Places.withTemporaryFolder { folder in
      let long = String(repeating: "n", count: 65)
      for options in [
        ["--organization", ""], ["--organization", long], ["--common-name", ""], ["--common-name", long],
      ] {
        for command in ["init", "issue"] {
          let refused = try await ca([command] + options, in: folder)
          #expect(refused.exit == .code(64), "\(refused)")
          #expect(refused.errors.first == "error: \(options[0]) must have 1 to 64 characters.", "\(refused)")
        }
      }
      #expect(try await ca("issue", long, in: folder).exit == .code(64))
      #expect(!FileManager.default.fileExists(atPath: folder + "/config"))
      #expect(try await ca("init", "--organization", String(long.dropLast()), in: folder).exit == .code(0))
      #expect(try await ca("issue", "--common-name", "Jörg", in: folder).exit == .code(0))
    }
  }

  @Test("The help names the option for an import that reports a wrong MAC")
  func legacyHelp() async throws {
    try await Places.withTemporaryFolder { folder in
      let help = try await ca("export", "--help", in: folder).output.joined(separator: " ")
      #expect(help.contains("MAC verification") && help.contains("--legacy"), "\(help)")
    }
  }

  private static let password = "hunter2"

  @Test(
    "The command exports a client in every format, and OpenSSL reads each",
    arguments: [
      ("pem", []), ("der", []), ("p12", []), ("p12", ["--legacy"]), ("mobileconfig", []),
      ("mobileconfig", ["--legacy"]),
    ] as [(String, [String])])
  func exports(_ format: String, _ options: [String]) async throws {
    try await Places.withTemporaryFolder { folder in
      _ = try await ca("init", in: folder)
      _ = try await ca("issue", in: folder)
      try Data("\(Self.password)\n".utf8).write(to: URL(fileURLWithPath: folder + "/password"))
      let isEncrypted = ["p12", "mobileconfig"].contains(format)
      let secret = isEncrypted ? ["--password-file", folder + "/password"] : []
      let (exit, output, errors) = try await ca(["export", "--format", format] + secret + options, in: folder)
      try #require(exit == .code(0), "\(exit): \(errors)")
      // Apple's systems read either, depending on their age: the reader of their error finds the option.
      #expect(errors.joined().contains("--legacy") == (isEncrypted && options.isEmpty), "\(errors)")
      #expect(output.count == 1)
      let file = folder + "/" + (try #require(output.first))
      switch format {
      case "p12": try await expectBundle(file, options)
      case "mobileconfig": try await expectBundle(try await identity(inProfile: file), options)
      default:
        let read = try await ChildProcess.run(
          Places.tool("openssl"), ["x509", "-in", file, "-inform", format, "-noout", "-subject"])
        #expect(read.exit == .code(0) && read.output.count == 1, "\(read.errors)")
      }
    }
  }

  @Test("A password for a format that is not encrypted is refused, and no file is written", arguments: ["pem", "der"])
  func uselessPassword(_ format: String) async throws {
    try await Places.withTemporaryFolder { folder in
      _ = try await ca("init", in: folder)
      _ = try await ca("issue", in: folder)
      for options in [["--password-file", "/dev/null"], ["--legacy"]] {
        let refused = try await ca(["export", "--format", format] + options, in: folder)
        #expect(refused.exit == .code(64) && refused.errors.first?.contains("is not encrypted") == true, "\(refused)")
      }
      #expect(!FileManager.default.fileExists(atPath: folder + "/config/client-ca/client.\(format)"))
    }
  }

  /// Expects the certificate, its authority's certificate and the key in the file, as OpenSSL reads it.
  private func expectBundle(_ file: String, _ options: [String]) async throws {
    let (exit, output, errors) = try await ChildProcess.run(
      Places.tool("openssl"),
      ["pkcs12", "-in", file, "-nodes", "-passin", "pass:" + Self.password] + options)
    #expect(exit == .code(0), "\(errors)")
    #expect(output.count { $0 == "-----BEGIN CERTIFICATE-----" } == 2)
    #expect(output.count { $0 == "-----BEGIN PRIVATE KEY-----" } == 1)
  }

  /// Writes the PKCS #12 data of a configuration profile to a file and returns its path.
  private func identity(inProfile file: String) async throws -> String {
    let program = """
      import plistlib, sys
      payloads = plistlib.load(open(sys.argv[1], "rb"))["PayloadContent"]
      open(sys.argv[2], "wb").write(payloads[1]["PayloadContent"])
      """
    let (exit, _, errors) = try await ChildProcess.run(
      Places.tool("python3"), ["-c", program, file, file + ".p12"])
    try #require(exit == .code(0), "\(errors)")
    return file + ".p12"
  }

  /// Runs a command on a new terminal, waits for its prompts, and types the password.
  private static let typist = """
    import os, pty, sys
    child, terminal = pty.fork()
    if child == 0:
        os.execv(sys.argv[1], sys.argv[1:])
    shown = b""
    for prompt in [b"Password of the exported file: ", b"Again: "]:
        while prompt not in shown:
            shown += os.read(terminal, 1024)
        os.write(terminal, b"hunter2\\n")
    try:
        while chunk := os.read(terminal, 1024):
            shown += chunk
    except OSError:
        pass
    print(shown.decode().replace("\\r", ""))
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """

  @Test("On a terminal, the command prompts twice for a password and does not show it")
  func prompt() async throws {
    try await Places.withTemporaryFolder { folder in
      _ = try await ca("init", in: folder)
      _ = try await ca("issue", in: folder)
      let (exported, shown, exportErrors) = try await ChildProcess.run(
        Places.tool("python3"),
        ["-c", Self.typist, Places.product("sallyport"), "ca", "export", "--format", "p12"], in: folder)
      #expect(exported == .code(0), "\(exportErrors)")
      #expect(shown.contains("config/client-ca/client.p12") && !shown.joined().contains("hunter2"))
      let (exit, _, errors) = try await ChildProcess.run(
        Places.tool("openssl"),
        ["pkcs12", "-in", folder + "/config/client-ca/client.p12", "-noout", "-passin", "pass:hunter2"])
      #expect(exit == .code(0), "\(errors)")
    }
  }
}
