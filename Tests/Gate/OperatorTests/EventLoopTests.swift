import Foundation
import GateProcesses
import GateService
import SimulatedDevice
import TestSupport
import Testing

@Suite("Event loops of a running gate", .serialized, .timeLimit(.minutes(2)))
struct EventLoopTests {
  /// Returns what the status says about the loops of a gate.
  private static func loops(
    _ setting: String, launcher: [String] = []
  ) async throws -> (status: GateStatus.Loops, text: [String]) {
    try await Places.withTemporaryFolder { folder in
      var plan = GatePlan()
      (plan.loops, plan.admin) = (setting, "{ listen: \"unix:DIR/admin.sock\" }")
      let gate = try await GateProcess(plan, in: folder + "/gate", launcher: launcher)
      defer { gate.process.kill() }
      let config = ["-c", gate.folder.path + "/gate.yaml"]
      let status = try await sallyport(["status", "--json"] + config).json(GateStatus.self)
      return (try #require(status.loops), try await sallyport(["status"] + config).output)
    }
  }

  @Test("A number in the configuration is used as it is")
  func chosen() async throws {
    let (loops, text) = try await Self.loops("3", launcher: ["/usr/bin/taskset", "-c", "0"])
    #expect(loops == .init(count: 3, reason: "listen.loops"))
    #expect(text.contains("  event loops    3: listen.loops"), "\(text)")
  }

  @Test("A gate that may run on one of several processors has one loop")
  func affinity() async throws {
    try #require(ProcessInfo.processInfo.processorCount > 1)
    let loops = try await Self.loops("auto", launcher: ["/usr/bin/taskset", "-c", "0"]).status
    #expect(loops == .init(count: 1, reason: "one for each processor that the process may run on"))
  }

  private static let groups = "/sys/fs/cgroup/cpu"
  private static var canMakeGroups: Bool {
    FileManager.default.isWritableFile(atPath: groups + "/cgroup.procs")
      && FileManager.default.fileExists(atPath: groups + "/cpu.cfs_quota_us")
  }

  @Test(
    "A gate in a control group with the time of half a processor has one loop",
    .enabled(if: canMakeGroups, "needs root and control groups of version 1"))
  func quota() async throws {
    let group = Self.groups + "/sallyport-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: group, withIntermediateDirectories: false)
    defer { rmdir(group) }
    try Data("50000".utf8).write(to: URL(fileURLWithPath: group + "/cpu.cfs_quota_us"))
    let entering = ["/bin/bash", "-c", "echo $$ >\(group)/cgroup.procs && exec \"$@\"", "bash"]
    let loops = try await Self.loops("auto", launcher: entering).status
    #expect(loops == .init(count: 1, reason: "the control group allows 0.5 processors"))
  }
}
