import Foundation

/// The cost of a number of operations.
struct BenchResult: Encodable {
  let operation: String
  let inFlight: Int
  var operations = 0
  /// Elapsed wall-clock time while claims were in flight.
  var seconds = 0.0
  var userSeconds = 0.0
  var systemSeconds = 0.0
  /// The number of calls that the store committed. `commits` is the number of their transactions.
  var calls = 0
  var commits = 0

  private var cpuSeconds: Double { userSeconds + systemSeconds }

  enum CodingKeys: String, CodingKey {
    case operation, operations, seconds, commits
    case inFlight = "in_flight"
    case perSecond = "per_second"
    case perCPUSecond = "per_second_and_core"
    case cpuMicroseconds = "cpu_us"
    case userMicroseconds = "user_us"
    case systemMicroseconds = "system_us"
    case callsPerCommit = "calls_per_commit"
  }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(operation, forKey: .operation)
    try container.encode(inFlight, forKey: .inFlight)
    try container.encode(operations, forKey: .operations)
    try container.encode(seconds, forKey: .seconds)
    try container.encode(commits, forKey: .commits)
    try container.encode(Double(operations) / seconds, forKey: .perSecond)
    try container.encode(Double(operations) / cpuSeconds, forKey: .perCPUSecond)
    try container.encode(microseconds(cpuSeconds), forKey: .cpuMicroseconds)
    try container.encode(microseconds(userSeconds), forKey: .userMicroseconds)
    try container.encode(microseconds(systemSeconds), forKey: .systemMicroseconds)
    try container.encode(callsPerCommit, forKey: .callsPerCommit)
  }

  func json() throws -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys]
    return String(decoding: try encoder.encode(self), as: UTF8.self)
  }

  var text: String {
    let user = Self.text(microseconds(userSeconds))
    let system = Self.text(microseconds(systemSeconds))
    return """
      \(operations) \(operation)s in \(Self.text(seconds)) s, \(inFlight) in flight
      \(Self.text(Double(operations) / seconds)) per second
      \(Self.text(Double(operations) / cpuSeconds)) per second and core
      \(Self.text(microseconds(cpuSeconds))) us of CPU each: \(user) user, \(system) system
      \(Self.text(callsPerCommit)) calls per commit
      """
  }

  private var callsPerCommit: Double { Double(calls) / Double(max(1, commits)) }
  private func microseconds(_ seconds: Double) -> Double { seconds * 1e6 / Double(max(1, operations)) }
  private static func text(_ number: Double) -> String { String(format: "%.1f", number) }
}

/// The CPU time of this process so far, over all threads.
struct CPUTime {
  let user: Double
  let system: Double

  static var now: CPUTime {
    var usage = rusage()
    getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
    return CPUTime(user: seconds(usage.ru_utime), system: seconds(usage.ru_stime))
  }

  private static func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1e6 }
}
