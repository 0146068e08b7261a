import ByteCoding
import Foundation
import GateProcesses
import SimulatedDevice
import TestSupport

/// A pebble, and the plan of a gate that obtains a certificate for `gate.example` from it.
struct PebbleGate {
  let pebble: Pebble
  let path: String
  var plan: GatePlan
  /// Writes `tls.acme` with further keys, in YAML.
  func tls(_ further: String, domains: String = "gate.example") -> String {
    "{ acme: { domains: [\(domains)], directory: \"\(pebble.directory)\", ca_file: \"\(pebble.authorityFile)\", "
      + "\(further) } }"
  }

  /// Calls `body` with a pebble whose plan `change` may change.
  static func serving<R>(
    _ change: (inout Pebble.Plan) throws -> Void, _ body: (PebbleGate) async throws -> R
  ) async throws -> R {
    try await Places.withTemporaryFolder { path in
      let folder = AuthorityFolder(path: path)
      _ = try folder.loadOrMake(appID: "\(GatePlan.teamID).\(GatePlan.bundleID)", at: .now())
      // No process listens at port 1.
      var pebblePlan = Pebble.Plan(validatesAt: 1)
      try change(&pebblePlan)
      return try await Pebble.serving(pebblePlan, folder) { pebble in
        var plan = GatePlan()
        plan.isEnforcing = false
        plan.admin = #"{ listen: "unix:DIR/admin.sock" }"#
        return try await body(PebbleGate(pebble: pebble, path: path, plan: plan))
      }
    }
  }

  /// Calls `body` with a gate of this plan and `tls`.
  func run<R>(_ tls: String, _ body: (GateProcess) async throws -> R) async throws -> R {
    var plan = plan
    plan.tls = tls
    let gate = try await GateProcess(plan, in: path + "/gate")
    defer { gate.process.kill() }
    return try await body(gate)
  }

  /// What `sallyport check` says about the configuration of the last gate.
  func check() async throws -> String {
    let answer = try await ChildProcess.run(Places.product("sallyport"), ["check", "-c", path + "/gate/gate.yaml"])
    return (answer.output + answer.errors).joined(separator: "\n")
  }

  static func isObtained(_ line: String) -> Bool { line.contains(#""message":"certificate obtained""#) }
}
