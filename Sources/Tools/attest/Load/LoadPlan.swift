internal import Commands
internal import Glibc

/// The parameters of a run.
struct LoadPlan: Sendable {
  let mode: LoadMode
  let connections: Int
  let duration: LoadDuration
  /// Bytes of payload of each message.
  let size: Int
  /// Whether every returned byte is compared.
  let verifies: Bool
  let console: LoadConsole
}

/// The counts of a run so far.
struct LoadTally: Sendable {
  /// Returned messages, or successful connections or registrations.
  var count = 0
  var latency = Histogram()
  /// Sockets that ended, connections or registrations that did not succeed.
  var losses = 0
  /// Why, for the first of them.
  var firstLoss: Failure?
  /// Messages that came back changed.
  var mismatches = 0
  /// The attempts of a storm that did not succeed.
  var attemptsFailed = 0

  mutating func lose(_ failure: Failure) {
    losses += 1
    if firstLoss == nil { firstLoss = failure }
  }
}

/// The result of a run.
struct LoadResult: Sendable {
  let tally: LoadTally
  let seconds: Double
  /// A signal ended it early.
  let wasInterrupted: Bool

  init(_ tally: LoadTally, seconds: Double, wasInterrupted: Bool) {
    self.tally = tally
    self.seconds = seconds
    self.wasInterrupted = wasInterrupted
  }

  var failure: Failure? {
    if tally.mismatches > 0 {
      return Failure(.problems, "\(tally.mismatches) messages did not come back as they were sent")
    }
    guard tally.losses > 0 else { return nil }
    let reason = tally.firstLoss.map { "; the first: \($0.message)" } ?? ""
    // If nothing succeeded, the reason is the result.
    if tally.count == 0, let first = tally.firstLoss { return first }
    return Failure(.problems, "\(tally.losses) were lost\(reason)", hint: tally.firstLoss?.hint)
  }
}

/// Nanoseconds of a clock that never jumps.
func monotonicNanoseconds() -> UInt64 {
  var time = timespec()
  clock_gettime(CLOCK_MONOTONIC, &time)
  return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}

/// The number of descriptors that this process may have.
enum DescriptorLimit {
  /// Takes all that the system allows.
  static func raise() {
    var limit = rlimit()
    let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    guard getrlimit(resource, &limit) == 0 else { return }
    limit.rlim_cur = limit.rlim_max
    setrlimit(resource, &limit)
  }
}
