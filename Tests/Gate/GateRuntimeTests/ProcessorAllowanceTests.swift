import Foundation
import TestSupport
import Testing

@testable import GateRuntime

@Suite("Processors that the gate may use")
struct ProcessorAllowanceTests {
  @Test(
    "The smallest of machine, affinity and quota counts; a part of a processor counts as one",
    arguments: [
      (8, 8, nil, 8, .machine), (8, 3, nil, 3, .affinity), (8, nil, nil, 8, .machine), (8, 8, 1.5, 2, .quota(1.5)),
      (8, 2, 1.5, 2, .affinity), (8, 8, 8, 8, .machine), (8, 8, 64, 8, .machine), (2, 2, 0.01, 1, .quota(0.01)),
      (1, 1, 0.5, 1, .machine), (0, 0, nil, 1, .machine), (4, 9, nil, 4, .machine),
    ] as [(Int, Int?, Double?, Int, ProcessorAllowance.Bound)])
  func smallest(
    _ online: Int, _ affine: Int?, _ quota: Double?, _ count: Int, _ bound: ProcessorAllowance.Bound
  ) {
    let allowance = ProcessorAllowance(online: online, affine: affine, quota: quota)
    #expect(allowance.count == count && allowance.bound == bound)
  }

  @Test(
    "The reason has the quota in processors",
    arguments: [(1.5, "1.5"), (2, "2"), (0.25, "0.25"), (0.333, "0.33"), (1.05, "1.05")])
  func reason(_ quota: Double, _ text: String) {
    let allowance = ProcessorAllowance(online: 8, affine: 8, quota: quota)
    #expect(allowance.reason == "the control group allows \(text) processors")
  }

  /// The files of control groups, by their path, and the quota that they say.
  struct Groups: Sendable, CustomTestStringConvertible {
    let title: String
    let membership: String
    let files: [String: String]
    let quota: Double?
    var testDescription: String { title }
  }

  @Test("The quota of a control group is the smallest on the way to the root", arguments: hierarchies)
  func quota(_ groups: Groups) async throws {
    try await Places.withTemporaryFolder { folder in
      func write(_ text: String, to path: String) throws {
        let file = URL(fileURLWithPath: folder + path)
        try FileManager.default.createDirectory(
          at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        try Data(text.utf8).write(to: file)
      }
      try write(groups.membership, to: "/proc/self/cgroup")
      for (path, text) in groups.files { try write(text, to: "/sys/fs/cgroup" + path) }
      #expect(ProcessorAllowance.quota(under: folder) == groups.quota)
    }
  }

  private static let hierarchies = [
    Groups(
      title: "a container with a namespace, version 2", membership: "0::/\n", files: ["/cpu.max": "150000 100000\n"],
      quota: 1.5),
    Groups(
      title: "a service of systemd, version 2", membership: "0::/system.slice/sallyport.service\n",
      files: ["/system.slice/sallyport.service/cpu.max": "50000 100000\n"], quota: 0.5),
    Groups(
      title: "a slice has less than its service", membership: "0::/a.slice/b.service\n",
      files: ["/a.slice/b.service/cpu.max": "400000 100000\n", "/a.slice/cpu.max": "200000 100000\n"], quota: 2),
    Groups(title: "no quota", membership: "0::/a\n", files: ["/a/cpu.max": "max 100000\n"], quota: nil),
    Groups(title: "no file", membership: "0::/a\n", files: [:], quota: nil),
    Groups(
      title: "version 1", membership: "12:cpu,cpuacct:/docker/1\n1:name=systemd:/\n",
      files: ["/cpu/docker/1/cpu.cfs_quota_us": "300000\n", "/cpu/docker/1/cpu.cfs_period_us": "100000\n"], quota: 3),
    Groups(
      title: "version 1 in a container, whose path is the host's", membership: "3:cpuacct,cpu:/docker/1\n",
      files: ["/cpuacct,cpu/cpu.cfs_quota_us": "25000\n", "/cpuacct,cpu/cpu.cfs_period_us": "100000\n"], quota: 0.25),
    Groups(
      title: "version 1 without a quota", membership: "3:cpu:/\n",
      files: ["/cpu/cpu.cfs_quota_us": "-1\n", "/cpu/cpu.cfs_period_us": "100000\n"], quota: nil),
    Groups(
      title: "both versions", membership: "1:cpu:/a\n0::/b\n",
      files: [
        "/cpu/a/cpu.cfs_quota_us": "200000\n", "/cpu/a/cpu.cfs_period_us": "100000\n",
        "/unified/b/cpu.max": "max 100000\n",
      ], quota: 2),
    Groups(
      title: "files that say nothing", membership: "cpu\n0::/a\n3:cpu:/\n",
      files: ["/a/cpu.max": "x y\n", "/cpu/cpu.cfs_quota_us": "0\n", "/cpu/cpu.cfs_period_us": "0\n"], quota: nil),
    Groups(title: "no membership", membership: "", files: ["/cpu.max": "100000 100000\n"], quota: nil),
  ]
}
