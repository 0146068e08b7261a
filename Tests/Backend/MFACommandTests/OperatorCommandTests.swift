import ByteCoding
import Foundation
import Glibc
import MFAFixtures
import TestSupport
import Testing

@Suite("Operating a running backend", .serialized, .timeLimit(.minutes(5)))
struct OperatorCommandTests {
  @Test("the admin socket has mode 0600 and answers health, metrics and status without an identity")
  func health() async throws {
    try await BackendInstallation.make { place in
      try await place.serving { backend in
        var status = stat()
        #expect(lstat(place.socket, &status) == 0 && status.st_mode & 0o777 == 0o600)
        #expect(try await place.admin("GET", "/livez").text == "ok\n")
        let ready = try await place.admin("GET", "/readyz?verbose")
        #expect(ready.status == 200 && ready.text.contains("[+] store: ok"), "\(ready.text)")
        #expect(ready.text.contains("[+] gate keys: 1 key") && ready.text.hasSuffix("\nready\n"), "\(ready.text)")
        #expect(try await place.admin("GET", "/readyz").text == "ready\n")
        let json = try await place.admin("GET", "/readyz", ["-H", "Accept: application/json"])
        #expect(json["ready"] == true)
        #expect(try await place.admin("GET", "/metrics").text.contains("mfa_store_up 1"))
        #expect(try await place.admin("GET", "/status").text.hasPrefix("mfa-backend "))
        #expect(try await place.admin("POST", "/livez").status == 405)
        #expect(try await place.admin("GET", "/v1/reload").status == 405)
        #expect(try await place.admin("GET", "/nothing")["code"] == "not_found")
        // The public port does not have them.
        let port = try #require(backend.port)
        for path in ["/livez", "/readyz", "/v1/status"] {
          #expect(try await curl("GET", "http://127.0.0.1:\(port)\(path)").status == 401, "\(path)")
        }
        #expect(try await backend.stop() == .code(0))
      }
      #expect(!FileManager.default.fileExists(atPath: place.socket))
    }
  }

  @Test("status shows the backend for people and for programs, and exits with 69 when none runs")
  func status() async throws {
    try await BackendInstallation.make { place in
      let none = try await place.operate("status")
      #expect(none.exit == .code(69), "\(none)")
      #expect(
        none.errors.first == "error: the backend's socket \(place.socket) cannot be reached: no backend runs here")
      try await place.serving { backend in
        let status = try await place.operate("status")
        #expect(status.exit == .code(0), "\(status)")
        let port = try #require(backend.port)
        #expect(status.output.first?.contains(": ready, up ") == true)
        #expect(status.output.first?.hasSuffix("listening at 127.0.0.1:\(port)") == true, "\(status.output)")
        for row in ["  store          ok", "  sockets        0 open", "  SMS            off, 0 waiting"] {
          #expect(status.output.contains(row), "\(status.output)")
        }
        let json = try JSONValue(Data(try await place.operate("status", "--json").output.joined().utf8))
        #expect(json["ready"] == true && json["sockets"] == 0 && json["store"] == .string(place.database))
        // The socket is enough, and so is the variable.
        let direct = try await place.mfa("status", "--admin", "unix:" + place.socket)
        #expect(direct.exit == .code(0), "\(direct)")
        let named = try await ChildProcess.run(
          Places.product("mfa-backend"), ["status"], environment: ["MFA_BACKEND_CONFIG": place.file])
        #expect(named.exit == .code(0), "\(named)")
      }
      let unnamed = try await place.mfa("status", "-c", "keys.json")
      #expect(unnamed.exit == .code(78) && unnamed.errors.last?.hasPrefix("hint: ") == true, "\(unnamed)")
      // The process was killed, and its socket remains.
      let dead = try await place.operate("status")
      #expect(dead.exit == .code(69) && dead.errors.first?.hasSuffix(": Connection refused") == true, "\(dead)")
    }
  }

  @Test(
    "without a configuration and without a socket, operators' commands say what they looked for",
    arguments: ["status", "reload", "drain"])
  func unnamed(_ command: String) async throws {
    let run = try await ChildProcess.run(
      Places.product("mfa-backend"), [command], environment: ["SALLYPORT_ROOT": "/nowhere"])
    #expect(run.exit == .code(69) && run.output.isEmpty, "\(run)")
    #expect(
      run.errors == [
        "error: no backend found: neither /nowhere/etc/mfa/mfa.yaml nor /nowhere/run/mfa/admin.sock exists",
        "hint: name its configuration with -c FILE, or its socket with --admin unix:/path",
      ], "\(run.errors)")
  }

  @Test("SALLYPORT_ROOT moves the standard places: a backend is found there by its configuration, then by its socket")
  func movedPlaces() async throws {
    try await BackendInstallation.make { place in
      try await place.serving { _ in
        let machine = place.folder + "/machine"
        func status() async throws -> ChildProcess.Exit {
          try await ChildProcess.run(
            Places.product("mfa-backend"), ["status"], environment: ["SALLYPORT_ROOT": machine]
          ).exit
        }
        for (standard, own) in [("/etc/mfa/mfa.yaml", place.file), ("/run/mfa/admin.sock", place.socket)] {
          #expect(try await status() == .code(69))
          let path = machine + standard
          try FileManager.default.createDirectory(
            atPath: (path as NSString).deletingLastPathComponent, withIntermediateDirectories: true)
          try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: own)
          #expect(try await status() == .code(0))
          try FileManager.default.removeItem(atPath: path)
        }
      }
    }
  }

  @Test("reload and SIGHUP apply new limits to the running backend")
  func reload() async throws {
    try await BackendInstallation.make { place in
      try await place.serving { backend in
        let app = AppInstance.genuine()
        #expect(try await place.ask(backend, as: app).status == 200)
        try place.configure("limits: { per_key: { requests: 1/1d } }")
        let reloaded = try await place.operate("reload")
        #expect(reloaded.exit == .code(0) && reloaded.output == ["reloaded"] && reloaded.errors.isEmpty, "\(reloaded)")
        // The bucket keeps at most the new size.
        #expect(try await place.ask(backend, as: app).status == 200)
        #expect(try await place.ask(backend, as: app).status == 429)
        try place.configure()
        backend.process.send(SIGHUP)
        _ = try await backend.process.errors.first("the reload") { $0.contains(#""reason":"SIGHUP""#) }
        #expect(try await place.ask(backend, as: .genuine()).status == 200)
        #expect(try await place.admin("GET", "/metrics").text.contains(#"mfa_config_reloads_total{result="done"} 2"#))
        let json = try await place.operate("reload", "--json")
        #expect(json.output == [#"{"needsRestart":[],"reloaded":true}"#], "\(json)")
      }
    }
  }

  @Test("reload of a unit's process: the socket is asked, and its refusal shown; without one the process gets SIGHUP")
  func reloadOfUnit() async throws {
    try await BackendInstallation.make { place in
      try await place.serving { backend in
        let process = "\(backend.process.id)"
        #expect(try await place.operate("reload", "--process", process).output == ["reloaded"])
        try place.configure("log: { level: loud }")
        let refused = try await place.operate("reload", "--process", process)
        #expect(refused.exit == .code(78) && refused.errors.joined().contains("log.level"), "\(refused)")
        // As of a backend that has no socket.
        try place.configure()
        let text = try String(contentsOfFile: place.file, encoding: .utf8)
        try text.replacing("admin: ", with: "# admin: ").write(toFile: place.file, atomically: true, encoding: .utf8)
        #expect(try await place.operate("reload", "--process", process).exit == .code(0))
        _ = try await backend.process.errors.first("the reload") { $0.contains(#""reason":"SIGHUP""#) }
        #expect(try await place.operate("reload", "--process", "1").exit == .code(64))
        try "version: [".write(toFile: place.file, atomically: true, encoding: .utf8)
        #expect(try await place.operate("reload", "--process", process).exit == .code(78))
      }
    }
  }

  @Test("an invalid file changes nothing: reload reports every fault, and status keeps the reason")
  func refusedReload() async throws {
    try await BackendInstallation.make { place in
      try await place.serving { backend in
        // One valid change among the faults must not be applied either.
        try place.configure(
          "limits: { per_key: { requests: 1/1d } }\npolicy: { most_devices: many }\nlog: { level: loud }")
        let refused = try await place.operate("reload")
        #expect(refused.exit == .code(78) && refused.output.isEmpty, "\(refused)")
        #expect(
          refused.errors.prefix(2) == [
            "error: \(place.file):8:25: policy.most_devices: \"many\" is not a whole number",
            "error: \(place.file):9:15: log.level: \"loud\" is not one of debug, info, notice, warning, error",
          ], "\(refused.errors)")
        #expect(refused.errors.last?.hasPrefix("hint: ") == true)
        let app = AppInstance.genuine()
        for _ in 1...3 { #expect(try await place.ask(backend, as: app).status == 200) }
        let status = try await place.operate("status")
        #expect(status.exit == .code(0) && status.output.contains { $0.contains("NOT RELOADED") }, "\(status)")
        #expect(try await place.admin("GET", "/metrics").text.contains("mfa_config_last_reload_successful 0"))
        // A secret that is missing is a fault of the configuration as well.
        try place.configure("sms: { account: AC1, token_file: absent, from: \"+1234567890\" }")
        let secret = try await place.operate("reload")
        #expect(secret.errors.first?.hasPrefix("error: the secret file \(place.folder)/absent cannot be read") == true)
        try place.configure("email: { smtp: \"mail:25\", from: a@example.com, user: u, token_file: absent }")
        let token = try await place.operate("reload")
        #expect(token.exit == .code(78), "\(token)")
        #expect(token.errors.first?.hasPrefix("error: the secret file \(place.folder)/absent cannot be read") == true)
        try place.configure()
        #expect(try await place.operate("reload").exit == .code(0))
        #expect(try await !place.operate("status").output.contains { $0.contains("NOT RELOADED") })
      }
    }
  }

  @Test("a reload reads the gate's keys in an unchanged file again, and refuses a file without keys")
  func otherKeys() async throws {
    try await BackendInstallation.make { place in
      let file = place.folder + "/gate.jwks"
      let keys = try String(contentsOfFile: place.gate.keysFile, encoding: .utf8)
      let otherGate = try TestGate(clock: .system)
      let other = try withExtendedLifetime(otherGate) {
        try String(contentsOfFile: otherGate.keysFile, encoding: .utf8)
      }
      try place.write(other, toPrivate: "gate.jwks")
      try place.configure(jwks: file)
      try await place.serving { backend in
        #expect(try await place.ask(backend, as: .genuine()).status == 401)
        try place.write(keys, toPrivate: "gate.jwks")
        #expect(try await place.operate("reload").exit == .code(0))
        #expect(try await place.ask(backend, as: .genuine()).status == 200)
        try place.write("{}", toPrivate: "gate.jwks")
        let refused = try await place.operate("reload")
        #expect(refused.exit == .code(78) && refused.errors.first?.contains("gate.jwks") == true, "\(refused)")
        #expect(try await place.ask(backend, as: .genuine()).status == 200)
      }
    }
  }

  @Test("the log has the warnings that check shows, at a start and after a reload")
  func loggedWarnings() async throws {
    try await BackendInstallation.make { place in
      func warning(_ backend: BackendProcess) async throws {
        let line = try await backend.process.errors.first("the warning") {
          $0.contains(#""message":"configuration warning""#)
        }
        #expect(line.contains("sms.sink: codes are written to the log"), "\(line)")
      }
      try place.configure("sms: { sink: log }")
      try await place.serving { try await warning($0) }
      try place.configure()
      try await place.serving { backend in
        try place.configure("sms: { sink: log }")
        #expect(try await place.operate("reload").exit == .code(0))
        try await warning(backend)
      }
    }
  }

  @Test("the answer to a reload names the settings that need a restart, and they keep their values")
  func restart() async throws {
    try await BackendInstallation.make { place in
      try await place.serving { backend in
        try place.configure(
          "metrics: { listen: \"127.0.0.1:0\" }\nlog: { sql: on, level: debug }\nshutdown: { drain_timeout: 3s }",
          database: "sqlite://\(place.folder)/other.db", listen: "127.0.0.1:1")
        let keys = try await place.mfa("keys", "make").output.joined()
        try place.write(keys, toPrivate: "keys.json")
        let reloaded = try await place.operate("reload")
        #expect(reloaded.exit == .code(0), "\(reloaded)")
        #expect(
          reloaded.errors == [
            "warning: changes of listen, database, metrics.listen, shutdown.drain_timeout, log.sql, keys_file need a "
              + "restart"
          ], "\(reloaded.errors)")
        #expect(try await place.ask(backend, as: .genuine()).status == 200)
        #expect(!FileManager.default.fileExists(atPath: place.folder + "/other.db"))
      }
    }
  }

  @Test(
    "a backend that starts before its gate answers 503 with Retry-After, says why, and serves once the gate answers")
  func waiting() async throws {
    try await BackendInstallation.make { place in
      let port = try Places.freePort()
      try place.configure(jwks: "http://127.0.0.1:\(port)/jwks.json")
      try await place.serving { backend in
        let early = try await place.ask(backend, as: .genuine())
        #expect(early.status == 503 && early["code"] == "unavailable", "\(early.text)")
        let head = try await curl(
          "GET", "http://127.0.0.1:\(backend.port ?? 0)/api/v1/device/d/status", nil,
          ["-i", "-H", "X-Attest-Assertion: \(try await place.gate.assertion(for: .genuine()))"])
        #expect(head.text.contains("Retry-After: 1"), "\(head.text)")
        let ready = try await place.admin("GET", "/readyz?verbose")
        #expect(ready.status == 503)
        let reason = "cannot fetch the gate's keys from http://127.0.0.1:\(port)/jwks.json: Connection refused"
        #expect(ready.text.contains("[-] gate keys: \(reason)"), "\(ready.text)")
        #expect(try await place.admin("GET", "/livez").status == 200)
        #expect(try await place.operate("status").exit == .code(1))
        try FileManager.default.copyItem(atPath: place.gate.keysFile, toPath: place.folder + "/jwks.json")
        let server = try ChildProcess(
          "/usr/bin/python3",
          ["-u", "-m", "http.server", "\(port)", "--bind", "127.0.0.1", "--directory", place.folder])
        defer { server.kill() }
        _ = try await backend.process.errors.first("the keys") { $0.contains(#""message":"gate keys fetched""#) }
        #expect(try await place.ask(backend, as: .genuine()).status == 200)
        #expect(try await place.admin("GET", "/readyz").status == 200)
      }
    }
  }

  @Test("a gate that accepts connections and does not answer delays no start")
  func silentGate() async throws {
    try await BackendInstallation.make { place in
      let port = try Places.freePort()
      let program = """
        import socket, sys
        server = socket.create_server(("127.0.0.1", \(port)))
        print("listening", flush=True)
        sys.stdin.read()
        """
      let gate = try ChildProcess("/usr/bin/python3", ["-c", program])
      defer { gate.kill() }
      _ = try await gate.output.first("the gate") { $0 == "listening" }
      try place.configure(jwks: "http://127.0.0.1:\(port)/jwks.json")
      try await place.serving { backend in
        // The first attempt is still running.
        let ready = try await place.admin("GET", "/readyz?verbose")
        #expect(ready.status == 503 && ready.text.contains("[-] gate keys: not fetched yet"), "\(ready.text)")
        #expect(try await backend.stop() == .code(0))
      }
    }
  }

  @Test("drain makes the backend unready while it serves, then closes sockets with 1001 and exits with 0")
  func drain() async throws {
    try await BackendInstallation.make { place in
      try place.configure("shutdown: { unready_delay: 6s, drain_timeout: 5s }")
      try await place.serving { backend in
        let identity = try await place.gate.assertion(for: .genuine())
        try await TestSocket.with(port: Int(backend.port ?? 0), assertion: identity) { socket in
          #expect(try await place.admin("GET", "/metrics").text.contains("mfa_sockets_active 1"))
          let drained = try await place.operate("drain")
          #expect(drained.exit == .code(0) && drained.output == ["draining"], "\(drained)")
          let ready = try await place.admin("GET", "/readyz?verbose")
          #expect(ready.status == 503 && ready.text.contains("[-] shutdown: "), "\(ready.text)")
          #expect(try await place.ask(backend, as: .genuine()).status == 200)
          // A second request does not shorten it.
          #expect(try await place.operate("drain").exit == .code(0))
          #expect(try await socket.closeCode() == 1001)
        }
        #expect(try await backend.process.exit(within: .seconds(40)) == .code(0))
      }
    }
  }

  @Test(
    "usage errors have an error line and a hint, in every command",
    arguments: [["runn"], ["status", "--jsn"], ["store"], ["check", "--schema", "--reference"]])
  func usage(_ arguments: [String]) async throws {
    let run = try await ChildProcess.run(Places.product("mfa-backend"), arguments)
    if arguments == ["store"] {
      #expect(run.exit == .code(0) && run.output.contains { $0.contains("backup") })
    } else {
      #expect(run.exit == .code(64) && run.output.isEmpty, "\(run)")
      #expect(run.errors.first?.hasPrefix("error: ") == true && run.errors.last?.hasPrefix("hint: ") == true, "\(run)")
    }
  }
}
