import Foundation
import GateProcesses
import TestSupport
import Testing

/// Figures of the kernel about a process.
struct ProcessFigures: Sendable {
  let id: pid_t

  init(of gate: GateProcess) { id = gate.process.id }

  /// The resident memory in bytes.
  var memory: Int { get throws { try status("VmRSS") } }
  /// The peak of the resident memory since `forgetPeak`, in bytes.
  var peakMemory: Int { get throws { try status("VmHWM") } }

  func forgetPeak() throws {
    // A file of the kernel cannot be replaced, so it is written in place.
    let file = try FileHandle(forWritingTo: URL(filePath: "/proc/\(id)/clear_refs"))
    try file.write(contentsOf: Data("5".utf8))
    try file.close()
  }

  /// The targets of the process's descriptors: files, sockets, and kernel objects.
  var descriptors: [String] {
    get throws {
      try FileManager.default.contentsOfDirectory(atPath: "/proc/\(id)/fd").compactMap {
        // A descriptor may be closed in the meantime.
        try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/\(id)/fd/\($0)")
      }
    }
  }

  var sockets: Int { get throws { try descriptors.count { $0.hasPrefix("socket:") } } }

  private func status(_ name: String) throws -> Int {
    for line in try String(contentsOfFile: "/proc/\(id)/status", encoding: .utf8).split(separator: "\n") {
      let words = line.split { " \t".contains($0) }
      if words.first == "\(name):", words.count == 3, let kibibytes = Int(words[1]) { return kibibytes << 10 }
    }
    throw Unexpected("no \(name) of process \(id)")
  }
}

/// Prints the memory that an operation used, and expects less than `bound` bytes.
func expectMemory(_ bytes: Int, below bound: Int, _ what: String, sourceLocation: SourceLocation = #_sourceLocation) {
  print("LoadTests: \(bytes) bytes \(what), of at most \(bound)")
  if !Sanitizer.isOn { #expect(bytes < bound, "\(what)", sourceLocation: sourceLocation) }
}

/// The maximum number of descriptors of this process and of the processes that it starts.
enum DescriptorLimit {
  /// Raises the limit to the maximum that the system allows, and returns it.
  static let raised: Int = {
    var limit = rlimit()
    let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    guard getrlimit(resource, &limit) == 0 else { return 256 }
    limit.rlim_cur = limit.rlim_max
    setrlimit(resource, &limit)
    return Int(min(limit.rlim_max, 1 << 20))
  }()
}

/// Polls `condition` until it is true, for states without an event, such as figures of the kernel about another
/// process.
///
/// - Throws: after `limit`.
func eventually(
  _ purpose: String, within limit: Duration = .seconds(15), _ condition: () throws -> Bool
) async throws {
  let deadline = ContinuousClock.now + limit
  while try !condition() {
    guard ContinuousClock.now < deadline else { throw Unexpected("waited \(limit) for \(purpose)") }
    try await Task.sleep(for: .milliseconds(20))
  }
}

/// Returns the results of `body` for `count` numbers, computed by `workers` concurrent tasks.
func gather<R: Sendable>(
  _ count: Int, workers: Int, _ body: @escaping @Sendable (Int) async throws -> R
) async throws -> [R] {
  try await withThrowingTaskGroup(of: [R].self) { group in
    for worker in 0..<workers {
      group.addTask {
        var results: [R] = []
        for number in stride(from: worker, to: count, by: workers) { results.append(try await body(number)) }
        return results
      }
    }
    return try await group.reduce(into: []) { $0 += $1 }
  }
}

extension GateProcess {
  /// Runs a gate with enforcement off in front of an echo server.
  static func echoing<R>(_ body: (GateProcess) async throws -> R) async throws -> R {
    // Raised before the servers start, because they inherit the limit.
    _ = DescriptorLimit.raised
    return try await EchoProcess.serving { upstream in
      var plan = GatePlan()
      plan.isEnforcing = false
      plan.routes = [("/", upstream)]
      return try await serving(plan, body)
    }
  }
}
