internal import CLinux
internal import ConfigurationEngine
internal import Glibc
internal import Settings

/// The number of processors that this process can use at the same time, and what bounds it.
///
/// Two event loops on one processor take turns, which costs each connection up to 15 % more, so the number of loops
/// follows it. A container usually has no processors of its own but a quota, which `_SC_NPROCESSORS_ONLN` does not know.
struct ProcessorAllowance: Sendable, Hashable {
  /// What leaves no more processors to the process.
  enum Bound: Sendable, Hashable {
    /// The machine has no more.
    case machine
    /// The set that `taskset`, `CPUAffinity=` or a control group's `cpuset` chose.
    case affinity
    /// The time that the control group allows, in processors.
    case quota(Double)
  }

  /// At least 1. A part of a processor counts as one.
  let count: Int
  let bound: Bound

  /// Why there are `count`, for operators.
  var reason: String {
    switch bound {
    case .machine: "one for each processor"
    case .affinity: "one for each processor that the process may run on"
    case .quota(let processors): "the control group allows \(Self.text(processors)) processors"
    }
  }

  /// The allowance of this process now. Later changes of a quota have no effect on what was built from it.
  static var current: ProcessorAllowance {
    ProcessorAllowance(
      online: sysconf(Int32(_SC_NPROCESSORS_ONLN)), affine: affineProcessors(), quota: quota(under: ""))
  }

  /// - Parameters:
  ///   - online: The processors of the machine.
  ///   - affine: Those that the process may run on; `nil` if that cannot be read.
  ///   - quota: The processors' worth of time that the control group allows; `nil` for any.
  init(online: Int, affine: Int?, quota: Double?) {
    let online = max(1, online)
    let runnable = min(online, max(1, affine ?? online))
    if let quota, quota.rounded(.up) < Double(runnable) {
      (count, bound) = (max(1, Int(quota.rounded(.up))), .quota(quota))
    } else {
      (count, bound) = (runnable, runnable < online ? .affinity : .machine)
    }
  }

  private static func affineProcessors() -> Int? {
    // 16,384 processors; the kernel refuses a set that is smaller than its own.
    withUnsafeTemporaryAllocation(of: UInt64.self, capacity: 256) { words in
      words.initialize(repeating: 0)
      guard sched_getaffinity(0, words.count * MemoryLayout<UInt64>.stride, words.baseAddress) == 0 else { return nil }
      return words.reduce(0) { $0 + $1.nonzeroBitCount }
    }
  }

  /// Returns the smallest quota of the process' control group and the groups above it, in processors; `nil` without one.
  ///
  /// - Parameter root: The folder that has the place of `/`, for tests.
  static func quota(under root: String) -> Double? {
    guard let groups = text(root + "/proc/self/cgroup") else { return nil }
    return groups.split(separator: "\n").compactMap { line -> Double? in
      // number:controllers:path. Version 2 has the number 0 and no controllers.
      let parts = line.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
      guard parts.count == 3 else { return nil }
      if parts[0] == "0", parts[1].isEmpty {
        return ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].compactMap {
          smallest(root + $0, parts[2], readingVersion2)
        }.min()
      }
      guard parts[1].split(separator: ",").contains("cpu") else { return nil }
      return ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/\(parts[1])"].compactMap {
        smallest(root + $0, parts[2], readingVersion1)
      }.min()
    }.min()
  }

  /// Returns the smallest quota from the group at `path` up to the hierarchy's root at `mount`.
  ///
  /// A container may see its own group as the root, and a path that is the host's: groups that do not exist have no
  /// quota.
  private static func smallest(_ mount: String, _ path: Substring, _ read: (String) -> Double?) -> Double? {
    var names = path.split(separator: "/").filter { $0 != ".." }
    var quotas = [read(mount)]
    while !names.isEmpty {
      quotas.append(read(mount + "/" + names.joined(separator: "/")))
      names.removeLast()
    }
    return quotas.compactMap(\.self).min()
  }

  /// `cpu.max`: the quota, or `max`, and the period, both in microseconds.
  private static func readingVersion2(_ group: String) -> Double? {
    guard let numbers = text(group + "/cpu.max")?.split(separator: " "), numbers.count == 2 else { return nil }
    return ratio(numbers[0], numbers[1])
  }

  /// The quota in microseconds, or -1, and the period.
  private static func readingVersion1(_ group: String) -> Double? {
    guard let quota = text(group + "/cpu.cfs_quota_us"), let period = text(group + "/cpu.cfs_period_us") else {
      return nil
    }
    return ratio(quota[...], period[...])
  }

  private static func ratio(_ quota: Substring, _ period: Substring) -> Double? {
    guard let quota = UInt64(quota), let period = UInt64(period), quota > 0, period > 0 else { return nil }
    return Double(quota) / Double(period)
  }

  private static func text(_ path: String) -> String? {
    guard let bytes = try? FileContent.read(path) else { return nil }
    return String(decoding: bytes.last == UInt8(ascii: "\n") ? bytes.dropLast() : bytes[...], as: UTF8.self)
  }

  /// At most two digits after the point, and none that say nothing.
  private static func text(_ number: Double) -> String {
    let hundredths = Int((number * 100).rounded())
    guard hundredths % 100 != 0 else { return "\(hundredths / 100)" }
    let digits = hundredths % 100 < 10 ? "0\(hundredths % 100)" : "\(hundredths % 100)"
    return "\(hundredths / 100)." + (digits.hasSuffix("0") ? String(digits.dropLast()) : digits)
  }
}
