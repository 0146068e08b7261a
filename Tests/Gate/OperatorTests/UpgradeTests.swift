import Foundation
import GateProcesses
import Glibc
import Locking
import SimulatedDevice
import TestSupport
import Testing
import Transport
import TransportEngine

/// A gate that was started through a link to the program, like an installed package, and its new processes.
private struct UpgradeBench: Sendable {
  let gate: GateProcess
  let visitor: Visitor
  /// The new processes. They are not children of the test, so it kills them by id.
  let newProcesses = LockedValue<[pid_t]>([])
  var config: [String] { ["-c", gate.folder.path + "/gate.yaml"] }
  let link: String
  var socket: String { gate.folder.path + "/admin.sock" }

  static func serving<R>(
    linger: String = "60s", isEnforcing: Bool = false, _ body: (UpgradeBench) async throws -> R
  ) async throws -> R {
    try await EchoProcess.serving { upstream in
      try await Places.withTemporaryFolder { folder in
        let link = folder + "/program"
        try FileManager.default.createSymbolicLink(
          atPath: link, withDestinationPath: Places.product("sallyport"))
        var plan = GatePlan()
        plan.routes = [("/", upstream)]
        plan.admin = #"{ listen: "unix:DIR/admin.sock" }"#
        plan.isEnforcing = isEnforcing
        plan.further = "shutdown: { linger: \(linger) }\nmetrics: { listen: \"127.0.0.1:0\" }"
        let gate = try await GateProcess(plan, in: folder + "/gate", program: link)
        let bench = UpgradeBench(gate: gate, visitor: try Visitor(to: gate), link: link)
        defer {
          gate.process.kill()
          for id in bench.newProcesses.withLock(\.self) { kill(id, SIGKILL) }
        }
        return try await body(bench)
      }
    }
  }

  /// Upgrades the gate and returns the id of the new process.
  func upgrade() async throws -> pid_t {
    struct Upgraded: Decodable {
      let upgraded: Bool
      let process: pid_t
    }
    let answer = try await sallyport(["upgrade", "--json"] + config)
    try #require(answer.status == 0, "\(answer.errors) \(gate.process.errors.lines)")
    let id = try answer.json(Upgraded.self).process
    newProcesses.withLock { $0.append(id) }
    return id
  }

  func put(_ file: String, at link: String) throws {
    try? FileManager.default.removeItem(atPath: link + ".new")
    try FileManager.default.createSymbolicLink(atPath: link + ".new", withDestinationPath: file)
    try #require(rename(link + ".new", link) == 0)
  }

  func rewrite(_ change: (String) -> String) throws {
    try change(String(contentsOfFile: config[1], encoding: .utf8))
      .write(toFile: config[1], atomically: true, encoding: .utf8)
  }

  /// Waits until `count` processes have logged that they stopped.
  func stopped(_ count: Int) async throws {
    _ = try await gate.process.errors.first(count, "the end of \(count) processes") {
      $0.contains(#""message":"stopped""#)
    }
  }
}

@Suite("A graceful upgrade of a serving gate", .serialized, .timeLimit(.minutes(5)))
struct UpgradeTests {
  /// Requests challenges repeatedly until `isOver`; returns the number of requests and the errors.
  private func visits(
    _ bench: UpgradeBench, until isOver: LockedValue<Bool>
  ) async -> (count: Int, faults: [String]) {
    await withTaskGroup(of: (Int, [String]).self) { group in
      for _ in 0..<4 {
        group.addTask {
          var (count, faults) = (0, [String]())
          while !isOver.withLock(\.self) {
            do { _ = try await bench.visitor.challenge() } catch { faults.append("\(error)") }
            count += 1
          }
          return (count, faults)
        }
      }
      return await group.reduce((0, [])) { ($0.0 + $1.0, $0.1 + $1.1) }
    }
  }

  @Test("Upgrades refuse no connection; open sockets stay in the old process, which exits after the last one closes")
  func refusesNoConnection() async throws {
    try await UpgradeBench.serving { bench in
      let old = try await bench.visitor.open()
      let isOver = LockedValue(false)
      async let visits = visits(bench, until: isOver)
      var processes: [pid_t] = []
      for _ in 0..<3 { processes.append(try await bench.upgrade()) }
      isOver.withLock { $0 = true }
      let (count, faults) = await visits
      #expect(faults == [] && count > 20, "\(count) visits")
      #expect(Set(processes + [bench.gate.process.id]).count == 4)

      // The second and the third process had no sockets to wait for. The first one still has.
      try await bench.stopped(2)
      #expect(!bench.gate.process.hasEnded)
      #expect(try await old.exchange(.text("still here")) == .text("still here"))
      let new = try await bench.visitor.open()
      #expect(try await new.exchange(.text("new")) == .text("new"))
      await old.close()
      #expect(try await bench.gate.process.exit() == .code(0))
      #expect(try await new.exchange(.text("newest")) == .text("newest"))

      // The last process removes the inherited socket file, as the first one would have done.
      #expect(UnixSocketFile.state(at: bench.socket) == .live)
      kill(try #require(processes.last), SIGTERM)
      #expect(try await new.ending(since: .now).code == 1001)
      try await bench.stopped(4)
      #expect(UnixSocketFile.state(at: bench.socket) == .absent)
      await #expect(throws: ClientError.self) { try await bench.visitor.connection() }
    }
  }

  @Test("The new process accepts nonces of the old one but no spent ones, and a revocation reaches both")
  func memory() async throws {
    try await UpgradeBench.serving(isEnforcing: true) { bench in
      let phone = try Phone(of: bench.gate.authority)
      try await bench.visitor.register(phone)
      let spent = try phone.credentials(over: await bench.visitor.challenge(), counter: 1)
      let old = try await bench.visitor.open("/", spent)
      let fresh = try await bench.visitor.challenge()
      let id = try await bench.upgrade()
      #expect(try await bench.visitor.refusal(of: spent) == "nonce_used")
      let new = try await bench.visitor.open("/", phone.credentials(over: fresh, counter: 2))
      #expect(try await sallyport(["keys", "revoke", phone.keyID] + bench.config).status == 0)
      #expect(try await old.ending(since: .now).code == 3003)
      #expect(try await new.ending(since: .now).code == 3003)
      kill(id, SIGTERM)
      try await bench.stopped(2)
    }
  }

  @Test("The old process stores what it decides about requests on connections from before the upgrade")
  func decisions() async throws {
    try await UpgradeBench.serving(isEnforcing: true) { bench in
      let phone = try Phone(of: bench.gate.authority)
      try await bench.visitor.register(phone)
      let socket = try await bench.visitor.open(as: phone, counter: 5)
      let old = try phone.credentials(over: await bench.visitor.challenge(), counter: 4)
      let connection = try await bench.visitor.connection()
      let host = "localhost:\(bench.gate.port)"
      let asked = try await connection.send(
        "GET", "/attest/challenge", headers: HeaderFields([.init(name: "Host", value: host)]))
      #expect(asked.status == 200)
      let id = try await bench.upgrade()
      _ = try await bench.gate.process.errors.first(1, "the hand-over") { $0.contains("new process took over") }
      do throws(ClientError) {
        _ = try await connection.upgrade("/", host: host, headers: old)
        Issue.record("admitted")
      } catch {
        guard case .refused(let answer) = error else { throw error }
        #expect(answer.headers.first("X-Attest-Error") == "counter_replayed")
      }
      #expect(!bench.gate.process.hasEnded)
      var found: [String] = []
      while !found.contains(where: { $0.contains("counter_replayed") }), !Task.isCancelled {
        found = try await sallyport(["keys", "decisions", phone.keyID, "--json"] + bench.config).output
      }
      #expect(!bench.gate.process.hasEnded)
      await socket.close()
      kill(id, SIGTERM)
      try await bench.stopped(2)
    }
  }

  @Test("Sockets that are open after shutdown.linger are closed with 1012; SIGTERM closes them earlier with 1001")
  func deadline() async throws {
    try await UpgradeBench.serving(linger: "0s") { bench in
      let first = try await bench.visitor.open()
      _ = try await bench.upgrade()
      #expect(try await first.ending(since: .now).code == 1012)
      try bench.rewrite { $0.replacingOccurrences(of: "linger: 0s", with: "linger: 1h") }
      #expect(try await sallyport(["reload"] + bench.config).status == 0)
      let second = try await bench.visitor.open()
      let lingering = try #require(bench.newProcesses.withLock(\.last))
      _ = try await bench.upgrade()
      kill(lingering, SIGTERM)
      #expect(try await second.ending(since: .now).code == 1001)
      try await bench.stopped(2)
    }
  }

  @Test("The new process is no child of the old one while that lingers, so that a service manager hears of its end")
  func parentage() async throws {
    try await UpgradeBench.serving { bench in
      let socket = try await bench.visitor.open()
      let id = try await bench.upgrade()
      // The command is answered when the new process serves; this line is logged after the hand-over.
      _ = try await bench.gate.process.errors.first(1, "the hand-over") { $0.contains("new process took over") }
      #expect(try await socket.exchange(.text("old")) == .text("old"))
      let status = try String(contentsOfFile: "/proc/\(id)/status", encoding: .utf8)
      let parent = try #require(status.firstMatch(of: /PPid:\t([0-9]+)/).flatMap { pid_t($0.1) })
      #expect(parent != bench.gate.process.id)
      // Nothing of the upgrade is left between them.
      let name = try String(contentsOfFile: "/proc/\(parent)/comm", encoding: .utf8)
      #expect(!name.contains("sallyport") && !name.contains("program"))
    }
  }

  @Test("A drain ends all old processes that linger, also the one from before two upgrades")
  func drainOfAll() async throws {
    try await UpgradeBench.serving { bench in
      let first = try await bench.visitor.open()
      _ = try await bench.upgrade()
      let second = try await bench.visitor.open()
      _ = try await bench.upgrade()
      // This process has no sockets to wait for.
      _ = try await bench.upgrade()
      #expect(try await first.exchange(.text("first")) == .text("first"))
      #expect(try await sallyport(["drain", "--yes"] + bench.config).status == 0)
      #expect(try await first.ending(since: .now).code == 1001)
      #expect(try await second.ending(since: .now).code == 1001)
      try await bench.stopped(4)
      #expect(try await bench.gate.process.exit() == .code(0))
    }
  }

  /// The error of the new program, the function that installs it, and the reason that the operator is shown.
  static let broken: [(name: String, make: @Sendable (String) throws -> Void, reason: String)] = [
    ("is missing", { unlink($0) }, "No such file or directory"),
    (
      "is not executable",
      {
        unlink($0)
        try "text".write(toFile: $0, atomically: true, encoding: .utf8)
      }, "Permission denied"
    ),
    (
      "exits at once",
      {
        unlink($0)
        try "#!/bin/sh\nexit 3\n".write(toFile: $0, atomically: true, encoding: .utf8)
        chmod($0, 0o700)
      }, "the new process exited with status 3"
    ),
  ]

  @Test("A new process that does not start leaves the old one unchanged, and the command prints the reason")
  func brokenProgram() async throws {
    try await UpgradeBench.serving { bench in
      let socket = try await bench.visitor.open()
      for (name, make, reason) in Self.broken {
        try make(bench.link)
        let answer = try await sallyport(["upgrade"] + bench.config)
        #expect(answer.status == 69 && answer.isFailure, "\(name)")
        #expect(answer.errors.joined().contains(reason), "\(name): \(answer.errors)")
        #expect(try await bench.visitor.open().exchange(.text(name)) == .text(name))
        #expect(try await socket.exchange(.text(name)) == .text(name))
      }
      // Its listeners are unchanged, so a working program can replace it.
      try bench.put(Places.product("sallyport"), at: bench.link)
      let id = try await bench.upgrade()
      #expect(try await socket.exchange(.text("old")) == .text("old"))
      #expect(try await bench.visitor.open().exchange(.text("new")) == .text("new"))
      kill(id, SIGTERM)
    }
  }

  @Test("An error in the new process's configuration or store is logged, and the old process continues")
  func brokenConfiguration() async throws {
    try await UpgradeBench.serving { bench in
      let socket = try await bench.visitor.open()
      let whole = try String(contentsOfFile: bench.config[1], encoding: .utf8)
      for (change, reason) in [
        (whole + "sesion: { ping: 1s }\n", "sesion: unknown key"),
        (whole.replacingOccurrences(of: "state.db", with: "nowhere/state.db"), "nowhere does not exist"),
        (whole.replacingOccurrences(of: "server.key", with: "tls-ca.pem"), "tls"),
      ] {
        try bench.rewrite { _ in change }
        bench.gate.process.send(SIGUSR2)
        let line = try await bench.gate.process.errors.first("the refusal of \(reason)") {
          $0.contains(#""message":"upgrade failed"#) && $0.contains(reason)
        }
        #expect(line.contains(#""reason":"SIGUSR2""#))
        #expect(try await socket.exchange(.text(reason)) == .text(reason))
        #expect(try await bench.visitor.open().exchange(.text("x")) == .text("x"))
      }
      try bench.rewrite { _ in whole }
      kill(try await bench.upgrade(), SIGTERM)
    }
  }

  @Test("A changed admin address applies with the upgrade; the public port stays, and a warning is logged")
  func movedListeners() async throws {
    try await UpgradeBench.serving { bench in
      let moved = bench.gate.folder.path + "/moved.sock"
      let other = try Places.freePort()
      try bench.rewrite {
        $0.replacingOccurrences(of: "admin.sock", with: "moved.sock")
          .replacingOccurrences(of: "127.0.0.1\", port: 0", with: "127.0.0.1\", port: \(other)")
      }
      // The command would look for the gate in the new configuration, which is not in effect yet.
      bench.gate.process.send(SIGUSR2)
      let line = try await bench.gate.process.errors.first("the upgrade") {
        $0.contains(#""message":"upgrade completed""#)
      }
      let id = try #require(
        line.components(separatedBy: #""process":"#).last.flatMap { pid_t($0.prefix(while: \.isNumber)) })
      bench.newProcesses.withLock { $0.append(id) }
      #expect(try await bench.gate.process.exit() == .code(0))
      #expect(UnixSocketFile.state(at: moved) == .live && UnixSocketFile.state(at: bench.socket) != .live)
      #expect(try await sallyport(["status"] + bench.config).status == 0)
      #expect(try await bench.visitor.open().exchange(.text("x")) == .text("x"))
      _ = try await bench.gate.process.errors.first("the warning") {
        $0.contains("listening port unchanged")
      }
      kill(id, SIGTERM)
    }
  }
}
