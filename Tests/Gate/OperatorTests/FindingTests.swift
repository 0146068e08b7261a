import Foundation
import GateProcesses
import GateService
import SimulatedDevice
import TestSupport
import Testing

@Suite("Commands that name no configuration", .serialized, .timeLimit(.minutes(5)))
struct FindingTests {
  /// The environment of a user whose folders are in `folder`, on a machine with nothing at the standard places.
  private static func user(_ folder: String, _ others: [String: String?] = [:]) -> [String: String?] {
    let own: [String: String?] = [
      "HOME": folder, "XDG_STATE_HOME": folder + "/state", "SALLYPORT_ROOT": folder + "/machine",
    ]
    return own.merging(others) { $1 }
  }

  /// Starts a development gate of the user and returns it once it serves.
  private static func developmentGate(of folder: String) async throws -> ChildProcess {
    let process = try ChildProcess(
      Places.product("sallyport"), ["dev", "--port", "0", "--upstream", "ws://127.0.0.1:1"],
      environment: user(folder), in: folder)
    _ = try await process.output.first("the gate's folder") { $0.hasPrefix("next ") }
    return process
  }

  @Test("A development gate is found by its socket, and its keys by its store")
  func developmentGate() async throws {
    try await Places.withTemporaryFolder { folder in
      let gate = try await Self.developmentGate(of: folder)
      defer { gate.kill() }
      let user = Self.user(folder)
      // Not ready: its upstream does not listen. The answer shows that the gate was asked.
      let status = try await sallyport(["status", "--json"], environment: user, in: folder)
      #expect(try status.json(GateStatus.self).store.place.contains(folder), "\(status)")
      for command in [["keys", "list"], ["sessions", "list"], ["reload"], ["keys", "export", folder + "/keys"]] {
        let done = try await sallyport(command, environment: user, in: folder)
        #expect(done.status == 0, "\(command): \(done)")
      }
      #expect(try String(contentsOfFile: folder + "/keys", encoding: .utf8).contains("sallyport-keys"))
      #expect(try await sallyport(["drain"], environment: user, in: folder).output == ["draining"])
      #expect(try await gate.exit() == .code(0))
    }
  }

  @Test(
    "Where no gate runs, the error names every place that was tried, and what to do",
    arguments: [
      ["status"], ["reload"], ["upgrade"], ["drain"], ["sessions", "list"], ["sessions", "close", "012345"],
      ["keys", "list"], ["keys", "export", "-"], ["refusals"], ["console", "--print"],
    ])
  func nothingFound(_ command: [String]) async throws {
    try await Places.withTemporaryFolder { folder in
      let failed = try await sallyport(command, environment: Self.user(folder), in: folder)
      #expect(failed.status == 69 && failed.isFailure && failed.errors.count == 2, "\(failed)")
      for place in [
        folder + "/machine/etc/sallyport/sallyport.yaml (does not exist)",
        folder + "/machine/run/sallyport/admin.sock (no gate listens)",
        folder + "/.local/share/sallyport/dev/admin.sock (no gate listens)",
      ] {
        #expect(failed.errors.first?.contains(place) == true, "\(failed)")
      }
      #expect(failed.errors.last?.contains("sallyport dev") == true)
    }
  }

  @Test("SALLYPORT_ROOT moves the standard places: a gate is found there by its configuration, then by its socket")
  func movedPlaces() async throws {
    try await AdminBench.serving { bench in
      try await Places.withTemporaryFolder { folder in
        let (machine, user) = (folder + "/machine", Self.user(folder))
        for place in ["/etc/sallyport", "/run/sallyport"] {
          try FileManager.default.createDirectory(atPath: machine + place, withIntermediateDirectories: true)
        }
        let file = machine + "/etc/sallyport/sallyport.yaml"
        try FileManager.default.createSymbolicLink(
          atPath: file, withDestinationPath: bench.gate.folder.path + "/gate.yaml")
        for command in [["sessions", "list"], ["keys", "list"], ["check", "--offline"], ["store", "check"]] {
          let done = try await sallyport(command, environment: user, in: folder)
          #expect(done.status == 0, "\(command): \(done)")
        }
        try FileManager.default.removeItem(atPath: file)
        #expect(try await sallyport(["sessions", "list"], environment: user, in: folder).status == 69)
        // A symbolic link is no socket.
        try FileManager.default.linkItem(atPath: bench.socket, toPath: machine + "/run/sallyport/admin.sock")
        let found = try await sallyport(["sessions", "list"], environment: user, in: folder)
        #expect(found.status == 0, "\(found)")
      }
    }
  }

  @Test("A command on the store names the gate that was found, if the gate's configuration cannot be read")
  func unreadableConfiguration() async throws {
    try await Places.withTemporaryFolder { folder in
      let gate = try await Self.developmentGate(of: folder)
      defer { gate.kill() }
      let place = folder + "/.local/share/sallyport/dev"
      try "{".write(toFile: place + "/sallyport.yaml", atomically: true, encoding: .utf8)
      let refused = try await sallyport(["keys", "export", "-"], environment: Self.user(folder), in: folder)
      #expect(refused.status == 64 && refused.isFailure)
      #expect(refused.errors.first?.contains("the gate at unix:\(place)/admin.sock") == true, "\(refused)")
      #expect(try await sallyport(["keys", "list"], environment: Self.user(folder), in: folder).status == 0)
    }
  }

  @Test("Of several running gates, none is guessed")
  func several() async throws {
    try await AdminBench.serving { bench in
      try await Places.withTemporaryFolder { folder in
        let gate = try await Self.developmentGate(of: folder)
        defer { gate.kill() }
        // As if the installed gate's configuration named the other one.
        try "SALLYPORT_ADMIN__LISTEN=unix:\(bench.socket)\n".write(
          toFile: folder + "/.env", atomically: true, encoding: .utf8)
        let refused = try await sallyport(["drain"], environment: Self.user(folder), in: folder)
        #expect(refused.status == 64 && refused.isFailure)
        for socket in [bench.socket, folder + "/.local/share/sallyport/dev/admin.sock"] {
          #expect(refused.errors.first?.contains("unix:" + socket) == true, "\(refused)")
        }
        let named = try await sallyport(
          ["sessions", "list"],
          environment: Self.user(folder, ["SALLYPORT_ADMIN__LISTEN": "unix:\(bench.socket)"]), in: folder)
        #expect(named.status == 0, "\(named)")
      }
    }
  }

  @Test("A gate whose socket two places name by different paths is one gate")
  func twoPaths() async throws {
    try await AdminBench.serving { bench in
      try await Places.withTemporaryFolder { folder in
        // As if the configuration named /var/run, which is a link to /run.
        try "SALLYPORT_ADMIN__LISTEN=unix:\(bench.socket)\n".write(
          toFile: folder + "/.env", atomically: true, encoding: .utf8)
        try FileManager.default.createDirectory(atPath: folder + "/machine/run", withIntermediateDirectories: true)
        try FileManager.default.createSymbolicLink(
          atPath: folder + "/machine/run/sallyport", withDestinationPath: bench.gate.folder.path)
        let found = try await sallyport(["sessions", "list"], environment: Self.user(folder), in: folder)
        #expect(found.status == 0, "\(found)")
      }
    }
  }

  @Test("SALLYPORT_CONFIG names the configuration; -c comes first")
  func variable() async throws {
    try await AdminBench.serving { bench in
      let file = bench.gate.folder.path + "/gate.yaml"
      try await Places.withTemporaryFolder { folder in
        let user = Self.user(folder, ["SALLYPORT_CONFIG": file])
        let checked = try await sallyport(["check", "--offline"], environment: user, in: folder)
        #expect(checked.status == 0)
        #expect(checked.output.last?.hasPrefix("\(file): configuration valid") == true, "\(checked)")
        #expect(try await sallyport(["sessions", "list"], environment: user, in: folder).status == 0)
        #expect(try await sallyport(["store", "check"], environment: user, in: folder).status == 0)

        let missing = Self.user(folder, ["SALLYPORT_CONFIG": folder + "/none.yaml"])
        for command in [["check"], ["run"], ["status"], ["store", "check"]] {
          let refused = try await sallyport(command, environment: missing, in: folder)
          #expect(refused.status == 78, "\(command): \(refused)")
          let error = "error: \(folder)/none.yaml:1:1: cannot read the file: No such file or directory (ENOENT)"
          #expect(refused.errors.contains(error))
          #expect(refused.errors.contains { $0.hasPrefix("hint: SALLYPORT_CONFIG names this file") }, "\(refused)")
        }
        #expect(try await sallyport(["check", "--offline", "-c", file], environment: missing, in: folder).status == 0)
      }
    }
  }

  @Test("A command about the store guesses none")
  func noStore() async throws {
    try await Places.withTemporaryFolder { folder in
      for command in [["migrate"], ["check"], ["backup", "b"], ["restore", "b"], ["rotate"]] {
        let refused = try await sallyport(["store"] + command, environment: Self.user(folder), in: folder)
        #expect(refused.status == 64 && refused.isFailure && refused.errors.count == 2, "\(command): \(refused)")
        #expect(refused.errors.last?.contains("SALLYPORT_CONFIG") == true)
      }
    }
  }

  @Test("Without a configuration a gate says where one was looked for")
  func noConfiguration() async throws {
    try await Places.withTemporaryFolder { folder in
      for command in ["run", "check"] {
        let refused = try await sallyport([command], environment: Self.user(folder), in: folder)
        #expect(refused.status == 78)
        #expect(
          refused.errors.last
            == "hint: no configuration file was found: name one with -c FILE or SALLYPORT_CONFIG, or create "
            + folder + "/machine/etc/sallyport/sallyport.yaml", "\(refused)")
      }
    }
  }
}
