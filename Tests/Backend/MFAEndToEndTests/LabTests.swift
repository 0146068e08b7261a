import Foundation
import GateProcesses
import MFAFixtures
import SimulatedDevice
import TestSupport
import Testing

@Suite("The device lab, through the real gate", .serialized, .timeLimit(.minutes(5)))
struct LabTests {
  private func run(
    _ arguments: [String], at household: BackendBehindGate, messages: String? = nil
  ) async throws -> (exit: ChildProcess.Exit, output: [String], errors: [String]) {
    try await ChildProcess.run(
      Places.product("attest"),
      ["lab", "run"] + arguments + [
        household.socketURL, "--authority", household.gate.folder.path, "--messages", messages ?? household.log,
      ],
      environment: ["XDG_DATA_HOME": household.data, "SALLYPORT_AUTHORITY": nil])
  }

  @Test(
    "A-001 A-002 A-150 A-S01 A-S02 A-S03 A-S04 A-S05 A-S06 A-S07 A-S08 A-S09 A-S10 A-223 B-051 B-053 B-077 B-080 the scenarios pass both ways"
  )
  func passes() async throws {
    try await BackendBehindGate.serving { household in
      let report = household.data + "-junit.xml"
      let run = try await run(["--junit", report], at: household)
      #expect(run.exit == .code(0), "\(run.output + run.errors)")
      #expect(run.output.count { $0.hasPrefix("ok ") } == 32, "\(run.output)")
      let document = try String(contentsOfFile: report, encoding: .utf8)
      #expect(document.contains(#"tests="32" failures="0""#))
    }
  }

  @Test("One scenario is played by one way, and printed as JSON")
  func one() async throws {
    try await BackendBehindGate.serving { household in
      let run = try await run(["A-S10", "--by", "socket", "--json"], at: household)
      #expect(run.exit == .code(0), "\(run.output + run.errors)")
      let line = try JSONValue(Data(try #require(run.output.first).utf8))
      #expect(line["id"]?.text == "A-S10" && line["by"]?.text == "socket" && line["passed"] == .bool(true))
      #expect(run.output.count == 1)
    }
  }

  @Test("Without the messages of the phone, the scenarios that need a code fail, and the exit code is 1")
  func withoutMessages() async throws {
    try await BackendBehindGate.serving { household in
      let empty = household.data + "-empty.log"
      try Data().write(to: URL(fileURLWithPath: empty))
      let run = try await run(["A-S01", "A-S07", "--by", "rest"], at: household, messages: empty)
      #expect(run.exit == .code(1))
      #expect(run.output.contains { $0.hasPrefix("ok      A-S01") }, "\(run.output)")
      #expect(run.output.contains("        found: no message with a code arrived within 5.0 seconds"))
      #expect(run.errors.first == "error: 1 of 2 scenarios failed")
    }
  }

  @Test("A report that cannot be written hides neither the verdict nor a failed scenario")
  func unwritableReport() async throws {
    try await BackendBehindGate.serving { household in
      let options = ["--by", "rest", "--junit", "/nowhere/report.xml"]
      let passed = try await run(["A-S01"] + options, at: household)
      #expect(passed.exit == .code(73), "\(passed.output + passed.errors)")
      #expect(passed.output.last?.hasSuffix(", all passed") == true, "\(passed.output)")
      #expect(passed.errors.first == "error: cannot write /nowhere/report.xml")
      let empty = household.data + "-empty.log"
      try Data().write(to: URL(fileURLWithPath: empty))
      let failed = try await run(["A-S07"] + options, at: household, messages: empty)
      #expect(failed.exit == .code(1), "\(failed.output + failed.errors)")
      #expect(failed.output.last?.hasSuffix(", 1 failed") == true, "\(failed.output)")
      #expect(failed.errors.contains("warning: cannot write /nowhere/report.xml"))
      #expect(failed.errors.contains("error: 1 of 1 scenarios failed"))
    }
  }

  @Test("A limit of attempts that does not end soon fails the scenario, with the time to wait")
  func limited() async throws {
    try await BackendBehindGate.serving(options: ["--ip-code-requests", "1/1h"]) { household in
      let run = try await run(["A-S07", "--by", "rest"], at: household)
      #expect(run.exit == .code(1), "\(run.output + run.errors)")
      #expect(run.errors.first == "error: 1 of 1 scenarios failed")
      #expect(run.errors.last?.hasPrefix("hint: the server limits attempts of one address: run it again in ") == true)
    }
  }

  @Test(
    "A wrong argument is an error that says what to do",
    arguments: [
      (["A-S99", "wss://localhost:1/", "--messages", "/dev/null"], "error: no scenario A-S99"),
      (["A-S01", "--messages", "/dev/null"], "error: the address of the gate is missing"),
      (["wss://localhost:1/", "--messages", "/nowhere"], "error: cannot read /nowhere"),
      (["wss://localhost:1/"], "error: Missing expected argument '--messages <file>'"),
      (
        ["wss://localhost:1/", "--messages", "/dev/null"],
        "error: a simulated device needs an authority that vouches for it"
      ),
    ])
  func misused(_ arguments: [String], _ error: String) async throws {
    let run = try await ChildProcess.run(
      Places.product("attest"), ["lab", "run"] + arguments, environment: ["SALLYPORT_AUTHORITY": nil])
    #expect(run.errors.first == error, "\(run.errors)")
    #expect(run.errors.contains { $0.hasPrefix("hint: ") })
  }

  @Test("A gate that is down fails the first step with its reason")
  func down() async throws {
    try await BackendBehindGate.serving { household in
      household.gate.process.kill()
      let run = try await run(["A-S01", "--by", "rest"], at: household)
      #expect(run.exit == .code(1))
      #expect(run.output.contains { $0.contains("the gate cannot be reached") }, "\(run.output)")
    }
  }
}
