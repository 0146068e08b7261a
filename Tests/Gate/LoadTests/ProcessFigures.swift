import Foundation
import GateProcesses
import TestSupport
import Testing

/// What the kernel says of a process.
struct ProcessFigures: Sendable {
  let id: pid_t

  init(of gate: GateProcess) { id = gate.process.id }

  /// Bytes of memory that it has now.
  var memory: Int { get throws { try status("VmRSS") } }
  /// The most that it has had at one time since `forgetPeak`.
  var peakMemory: Int { get throws { try status("VmHWM") } }

  func forgetPeak() throws {
    // A file of the kernel's cannot be replaced, so it is written in place.
    let file = try FileHandle(forWritingTo: URL(filePath: "/proc/\(id)/clear_refs"))
    try file.write(contentsOf: Data("5".utf8))
    try file.close()
  }

  /// What its descriptors stand for: files, sockets, and what the kernel makes up.
  var descriptors: [String] {
    get throws {
      try FileManager.default.contentsOfDirectory(atPath: "/proc/\(id)/fd").compactMap {
        // One may be closed in the meantime.
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

/// Says how much memory something took, and expects it to be less than `bound`.
func expectMemory(_ bytes: Int, below bound: Int, _ what: String, sourceLocation: SourceLocation = #_sourceLocation) {
  print("LoadTests: \(bytes) bytes \(what), of at most \(bound)")
  if !Sanitizer.isOn { #expect(bytes < bound, "\(what)", sourceLocation: sourceLocation) }
}

/// The number of descriptors that this process, and those that it starts, may have.
enum DescriptorLimit {
  /// Takes all that the system allows, and says how many that is.
  static let raised: Int = {
    var limit = rlimit()
    let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    guard getrlimit(resource, &limit) == 0 else { return 256 }
    limit.rlim_cur = limit.rlim_max
    setrlimit(resource, &limit)
    return Int(min(limit.rlim_max, 1 << 20))
  }()
}

/// Asks `condition` again and again until it holds, for what nobody tells: what the kernel says of another process.
func eventually(
  _ purpose: String, within limit: Duration = .seconds(15), _ condition: () throws -> Bool
) async throws {
  let deadline = ContinuousClock.now + limit
  while try !condition() {
    guard ContinuousClock.now < deadline else { throw Unexpected("waited \(limit) for \(purpose)") }
    try await Task.sleep(for: .milliseconds(20))
  }
}

/// What `body` gives for each of `count` numbers, worked on by `workers` tasks at a time.
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
  /// A gate that lets everybody in, in front of an echo server.
  static func echoing<R>(_ body: (GateProcess) async throws -> R) async throws -> R {
    // Before the servers start: they inherit it.
    _ = DescriptorLimit.raised
    return try await EchoProcess.serving { upstream in
      var plan = GatePlan()
      plan.isEnforcing = false
      plan.routes = [("/", upstream)]
      return try await serving(plan, body)
    }
  }
}
