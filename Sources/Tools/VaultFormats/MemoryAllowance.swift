internal import Foundation

/// The memory that this process may still take without being killed for it.
enum MemoryAllowance {
  /// The bytes that the kernel reports as available, or that the process' control group or a group above it leaves,
  /// whichever are fewer; `nil` where the system reports neither. Swap space is not counted: it would keep what a
  /// password becomes.
  ///
  /// - Parameter root: The folder that has the place of `/`, for tests.
  static func available(under root: String = "") -> Int? {
    ([ofMachine(root)] + ofGroups(root)).compactMap(\.self).min()
  }

  private static func ofMachine(_ root: String) -> Int? {
    guard let line = lines(root + "/proc/meminfo").first(where: { $0.hasPrefix("MemAvailable:") }),
      let kibibytes = line.split(separator: " ").dropFirst().first.flatMap({ Int($0) })
    else { return nil }
    let (bytes, isTooMuch) = kibibytes.multipliedReportingOverflow(by: 1024)
    return isTooMuch ? nil : bytes
  }

  /// What each control group of version 2 leaves. A container may see its own group as the root, and a path that is the
  /// host's: groups that do not exist have no limit.
  private static func ofGroups(_ root: String) -> [Int?] {
    guard let path = lines(root + "/proc/self/cgroup").first(where: { $0.hasPrefix("0::") })?.dropFirst(3) else {
      return []
    }
    var names = path.split(separator: "/").filter { $0 != ".." }
    var found = [left(in: root + "/sys/fs/cgroup")]
    while !names.isEmpty {
      found.append(left(in: root + "/sys/fs/cgroup/" + names.joined(separator: "/")))
      names.removeLast()
    }
    return found
  }

  /// No limit beyond 1 PiB is one.
  private static let largest = 1 << 50

  /// The limit less the use. Cached files are no use: the kernel gives them up first.
  private static func left(in group: String) -> Int? {
    guard let most = lines(group + "/memory.max").first.flatMap({ Int($0) }),
      let used = lines(group + "/memory.current").first.flatMap({ Int($0) }), (0...largest).contains(most), used >= 0
    else { return nil }
    let cached = lines(group + "/memory.stat").reduce(0) { sum, line in
      let parts = line.split(separator: " ")
      guard parts.count == 2, parts[0] == "inactive_file" || parts[0] == "active_file", let bytes = Int(parts[1]),
        (0...most).contains(bytes)
      else { return sum }
      return min(most, sum + bytes)
    }
    return max(0, most - max(0, used - cached))
  }

  private static func lines(_ path: String) -> [Substring] {
    ((try? String(contentsOfFile: path, encoding: .utf8)) ?? "").split(separator: "\n")
  }
}
