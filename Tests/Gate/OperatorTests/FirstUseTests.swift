import Foundation
import GateProcesses
import Glibc
import SimulatedDevice
import TestSupport
import Testing

@Suite("What goes wrong at the first use is told at once", .serialized, .timeLimit(.minutes(5)))
struct FirstUseTests {
  /// Runs `check` or `run` with the configuration of a gate that has stopped, after `change`.
  private func changed(
    _ arguments: [String], with plan: GatePlan = GatePlan(), _ change: (String) -> String
  ) async throws -> (transcript: Transcript, folder: String) {
    try await GateProcess.serving(plan) { gate in
      try await gate.crash()
      let file = gate.folder.path + "/gate.yaml"
      try change(String(contentsOfFile: file, encoding: .utf8)).write(toFile: file, atomically: true, encoding: .utf8)
      return (try await sallyport(arguments + ["-c", file]), gate.folder.path)
    }
  }

  @Test("A gate whose store has no folder does not start, and names the folder")
  func missingFolder() async throws {
    let (refused, folder) = try await changed(["run"]) { $0.replacing("state.db", with: "nowhere/state.db") }
    #expect(refused.status == 78 && refused.isFailure)
    #expect(refused.errors.contains("error: store.url: the folder \(folder)/nowhere does not exist"), "\(refused)")
  }

  @Test(
    "A store that is another file is named as that, and its mode is not to be changed", arguments: ["run", "check"])
  func foreignStore(command: String) async throws {
    let (refused, folder) = try await changed([command]) { $0.replacing("state.db", with: "tls-ca.pem") }
    #expect(refused.status == 78)
    let text = (refused.output + refused.errors).joined(separator: "\n")
    #expect(text.contains("store.url: \(folder)/tls-ca.pem is not a database") && !text.contains("chmod"), "\(text)")
  }

  @Test(
    "A folder in the place of the store is named as that, and its mode is not to be changed",
    arguments: ["run", "check"], [mode_t(0o755), 0o700])
  func folderAsStore(command: String, mode: mode_t) async throws {
    let (refused, folder) = try await changed([command]) { text in
      let place = text.firstMatch(of: /sqlite:\/\/(\/.*\/)state\.db/)?.1 ?? "/nowhere/"
      #expect(mkdir("\(place)folder", mode) == 0)
      return text.replacing("state.db", with: "folder")
    }
    #expect(refused.status == 78)
    let text = (refused.output + refused.errors).joined(separator: "\n")
    #expect(text.contains("store.url: \(folder)/folder is a folder") && !text.contains("chmod"), "\(text)")
  }

  @Test("An upstream that is no WebSocket server is named with its answer; one that is passes")
  func upstreams() async throws {
    let server = try ChildProcess(
      Places.tool("python3"), ["-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory", "/usr/share/doc"])
    defer { server.kill() }
    let line = try await server.output.first("the port") { $0.contains("port ") }
    let port = try #require(line.firstMatch(of: /port ([0-9]+)/)?.1)
    try await EchoProcess.serving { echo in
      var plan = GatePlan()
      plan.routes = [("/", "ws://127.0.0.1:\(port)"), ("/echo", echo)]
      let (checked, _) = try await changed(["check"], with: plan) { $0 }
      let text = (checked.output + checked.errors).joined(separator: "\n")
      #expect(
        text.contains("ws://127.0.0.1:\(port) answers a WebSocket handshake for / with 200 instead of 101"), "\(text)")
      #expect(!text.contains("\(echo) answers"), "\(text)")
    }
  }

  /// Runs a command without the right to read the files of root, or of this user.
  private static let unprivileged = """
    import os, sys
    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
    os.execv(sys.argv[1], sys.argv[1:])
    """

  @Test("A .env of the working directory that this user cannot read is a warning")
  func forbiddenDotEnv() async throws {
    try await Places.withTemporaryFolder { folder in
      try "SALLYPORT_LISTEN__PORT=x\n".write(toFile: folder + "/.env", atomically: true, encoding: .utf8)
      try #require(chmod(folder, 0o755) == 0 && chmod(folder + "/.env", geteuid() == 0 ? 0o600 : 0) == 0)
      let (_, output, errors) = try await ChildProcess.run(
        Places.tool("python3"),
        ["-c", Self.unprivileged, Places.product("sallyport"), "check", "--offline", "--set", "listen.port=0"],
        environment: ["HOME": folder], in: folder)
      let text = (output + errors).joined(separator: "\n")
      #expect(text.contains("warning: .env:1: not used: \(folder)/.env: Permission denied"), "\(text)")
      #expect(!text.contains("error: .env"), "\(text)")
    }
  }

  /// Runs a command on a new terminal, and types the first argument when it asks.
  private static let typist = """
    import os, pty, sys
    child, terminal = pty.fork()
    if child == 0:
        os.execv(sys.argv[2], sys.argv[2:])
    shown, isAnswered = b"", False
    try:
        while chunk := os.read(terminal, 1024):
            shown += chunk
            if b"[y/N]" in shown and not isAnswered:
                isAnswered = True
                os.write(terminal, sys.argv[1].encode() + b"\\n")
    except OSError:
        pass
    print(shown.decode().replace("\\r", ""))
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """

  @Test("A gate that was found and not named is named, and on a terminal nothing happens to it without a yes")
  func namedGate() async throws {
    try await AdminBench.serving { bench in
      try await Places.withTemporaryFolder { folder in
        try "SALLYPORT_ADMIN__LISTEN=unix:\(bench.socket)\n".write(
          toFile: folder + "/.env", atomically: true, encoding: .utf8)
        let user: [String: String?] = [
          "HOME": folder, "XDG_DATA_HOME": nil, "SALLYPORT_CONFIG": nil, "SALLYPORT_ADMIN__LISTEN": nil,
        ]
        let name =
          "the gate at unix:\(bench.socket), process \(bench.gate.process.id), with \(bench.gate.folder.path)/gate.yaml"
        let reloaded = try await sallyport(["reload"], environment: user, in: folder)
        #expect(reloaded.status == 0 && reloaded.errors == [name], "\(reloaded)")
        func type(_ answer: String, _ command: [String]) async throws -> (exit: ChildProcess.Exit, output: [String]) {
          let (exit, output, _) = try await ChildProcess.run(
            Places.tool("python3"), ["-c", Self.typist, answer, Places.product("sallyport")] + command,
            environment: user, in: folder)
          return (exit, output)
        }
        let refused = try await type("n", ["drain"])
        #expect(refused.exit == .code(1) && refused.output.joined().contains("Drain \(name)? [y/N]"), "\(refused)")
        #expect(!bench.gate.process.hasEnded)
        let unasked = try await type("n", ["reload", "--yes"])
        #expect(unasked.exit == .code(0) && !unasked.output.joined().contains("[y/N]"), "\(unasked)")
        #expect(try await type("y", ["drain"]).exit == .code(0))
        let line = try await bench.gate.process.errors.first("the reason") { $0.contains(#""message":"stopping""#) }
        #expect(line.contains(/drain requested by an operator \(uid [0-9]+, process [1-9][0-9]*\)/), "\(line)")
        #expect(line.contains("uid \(geteuid()), "))
      }
    }
  }
}
