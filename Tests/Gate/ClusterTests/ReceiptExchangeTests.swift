import AppAttest
import AttestGate
import ByteCoding
import Foundation
import GateProcesses
import PostgresServers
import SQLiteStore
import SimulatedDevice
import TestSupport
import Testing

/// Gates that exchange receipts with `attest dev-apple`, which verifies requests as Apple does.
@Suite("Receipts are exchanged with Apple", .serialized, .timeLimit(.minutes(5)))
struct ReceiptExchangeTests {
  private static func folder(_ path: String) throws -> AuthorityFolder {
    let folder = AuthorityFolder(path: path)
    _ = try folder.loadOrMake(appID: "\(GatePlan.teamID).\(GatePlan.bundleID)", at: .now())
    return folder
  }

  /// Waits until `condition` is true; records an issue if that does not happen in time.
  private func wait(for purpose: String, _ condition: () async throws -> Bool) async throws {
    for _ in 0..<1200 {
      if try await condition() { return }
      try await Task.sleep(for: .milliseconds(50))
    }
    Issue.record("waited too long for \(purpose)")
  }

  @Test("A device that attested twenty keys is refused with each of them; a device with one key is admitted")
  func refusedDevice() async throws {
    try await Places.withTemporaryFolder { path in
      let folder = try Self.folder(path + "/gate")
      let apple = try await DataServiceProcess(folder)
      defer { apple.process.kill() }
      var plan = GatePlan()
      plan.risk = apple.risk(", threshold: 10, action: refuse")
      let gate = try await GateProcess(plan, in: path + "/gate")
      defer { gate.process.kill() }
      let visitor = try Visitor(to: gate)
      var (name, phones) = (SimulatedDeviceName(), [Phone]())
      for number in 1...20 as ClosedRange<UInt32> {
        name.attestedKeys = number
        let phone = try Phone(of: gate.authority, device: name)
        try await visitor.register(phone)
        phones.append(phone)
      }
      let honest = try Phone(of: gate.authority)
      try await visitor.register(honest)
      try await wait(for: "21 answers") { apple.statuses.count >= 21 }
      #expect(apple.statuses == Array(repeating: 200, count: 21))
      // The gate stores a result after the answer.
      try await wait(for: "the refusal") {
        try await visitor.refusal(of: phones[19].credentials(over: visitor.challenge(), counter: 1)) == "risk_too_high"
      }
      #expect(
        try await visitor.refusal(of: honest.credentials(over: visitor.challenge(), counter: 1))
          == "upstream_unavailable")
    }
  }

  @Test("401: one request and one error line; a reload tries again, and says that it works")
  func unauthorized() async throws {
    try await Places.withTemporaryFolder { path in
      let folder = try Self.folder(path + "/gate")
      let apple = try await DataServiceProcess(folder, "--answer", "401", "--answer", "ok")
      defer { apple.process.kill() }
      var plan = GatePlan()
      plan.risk = apple.risk("")
      let gate = try await GateProcess(plan, in: path + "/gate")
      defer { gate.process.kill() }
      let visitor = try Visitor(to: gate)
      for _ in 0..<3 { try await visitor.register(Phone(of: gate.authority)) }
      let line = try await gate.process.errors.first("the error") { $0.contains("receipt exchange stopped") }
      #expect(line.contains(#""level":"error""#) && line.contains("SIMULATED1"))
      #expect(apple.statuses == [401])
      gate.process.send(SIGHUP)
      try await wait(for: "three exchanges") { apple.statuses.count >= 4 }
      #expect(apple.statuses == [401, 200, 200, 200])
      #expect(gate.process.errors.lines.count { $0.contains("receipt exchange stopped") } == 1)
    }
  }

  /// The long histories kill the gates at other moments.
  static let seeds = 1...(ProcessInfo.processInfo.environment["SALLYPORT_TEST_CLUSTER"] == "1" ? 10 : 1)

  @Test(
    "Of two gates on one database one exchanges; when it is killed, the other goes on and skips no key",
    arguments: seeds)
  func killedGate(_ seed: Int) async throws {
    var random = SeededGenerator(seed: UInt64(seed))
    let moments = (0..<2).map { _ in
      (count: Int.random(in: 1...12, using: &random), pause: Int.random(in: 0...200, using: &random))
    }
    try await Places.withTemporaryFolder { path in
      let folder = try Self.folder(path + "/gate")
      let apple = try await DataServiceProcess(folder)
      defer { apple.process.kill() }
      var plan = GatePlan()
      plan.risk = apple.risk("")
      plan.storeURL = try await PostgresServer.shared().newURL()
      let gates = [
        try await GateProcess(plan, in: path + "/gate"), try await GateProcess(plan, in: path + "/gate"),
      ]
      defer { for gate in gates { gate.process.kill() } }
      let visitor = try Visitor(to: gates[1])
      for _ in 0..<40 { try await visitor.register(Phone(of: gates[1].authority)) }
      func pass(_ moment: (count: Int, pause: Int)) async throws {
        let count = apple.statuses.count + moment.count
        try await wait(for: "exchanges") { apple.statuses.count >= count }
        try await Task.sleep(for: .milliseconds(moment.pause))
      }
      try await pass(moments[0])
      try await gates[0].crash()
      // A third gate in its place, so that the one that exchanged is replaced whichever it was.
      let third = try await GateProcess(plan, in: path + "/gate")
      defer { third.process.kill() }
      try await pass(moments[1])
      try await gates[1].crash()
      try await wait(for: "all exchanges") { apple.statuses.count { $0 == 200 } >= 40 }
      // Each kill can lose one result, whose exchange is repeated.
      #expect((40...42).contains(apple.statuses.count), "\(apple.statuses.count)")
    }
  }

  @Test("With risk off nothing goes to Apple; with it on, the request goes to Apple's host through the proxy")
  func off() async throws {
    for (isOn, count) in [(false, 0), (true, 1)] {
      try await Places.withTemporaryFolder { path in
        let folder = try Self.folder(path + "/gate")
        _ = try folder.developerKey()
        let proxy = try ForwardProxyServer(.serve(port: 1, document: "{}"))
        defer { proxy.stop() }
        var plan = GatePlan()
        let host = "data-development.appattest.apple.com"
        if isOn {
          plan.risk =
            "key_file: \"DIR/developer-key.p8\", key_id: SIMULATED1, "
            + "endpoint: \"https://\(host)/v1/attestationData\""
        }
        let gate = try await GateProcess(
          plan, in: path + "/gate", launcher: [Places.tool("env"), "https_proxy=\(proxy.url)"])
        defer { gate.process.kill() }
        let visitor = try Visitor(to: gate)
        try await visitor.register(Phone(of: gate.authority))
        if isOn { _ = try await proxy.head("a tunnel to Apple") { $0.hasPrefix("CONNECT \(host):443 ") } }
        // Everything that may begin an exchange: a reload, another registration, the graceful end.
        gate.process.send(SIGHUP)
        _ = try await gate.process.errors.first("the reload") { $0.contains("configuration reloaded") }
        try await visitor.register(Phone(of: gate.authority))
        gate.process.send(SIGTERM)
        #expect(try await gate.process.exit(within: .seconds(60)) == .code(0))
        #expect(min(1, proxy.heads.count) == count, "\(proxy.heads)")
      }
    }
  }
}
