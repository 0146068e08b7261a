import Foundation
import SQLiteStore

/// A place where claims enter. A refused claim is an error, because it would improve the figures.
protocol Entrance: Sendable {
  associatedtype Claim: Sendable
  /// Makes the claims that devices send.
  func mint(_ count: Int) throws -> [Claim]
  func pass(_ claim: Claim) async throws
}

/// Sends rounds of claims through an entrance and prints their cost.
struct Measurement {
  let name: String
  let options: BenchOptions
  /// The number of claims in a round.
  let roundSize: Int

  func run(through entrance: some Entrance, tally: () -> BatchTally) async throws {
    var result = BenchResult(operation: name, inFlight: options.inFlight)
    if let count = options.count {
      try await round(Array(entrance.mint(options.minted ?? count).prefix(count)), entrance, tally, &result)
    } else {
      // The first round fills caches and opens connections, so it does not count.
      var ignored = result
      try await round(entrance.mint(roundSize), entrance, tally, &ignored)
      while result.seconds < options.seconds {
        try await round(entrance.mint(roundSize), entrance, tally, &result)
      }
    }
    print(options.json ? try result.json() : result.text)
  }

  private func round<E: Entrance>(
    _ claims: [E.Claim], _ entrance: E, _ tally: () -> BatchTally, _ result: inout BenchResult
  ) async throws {
    if options.wait {
      print("ready")
      fflush(nil)
      _ = readLine()
    }
    let before = (wall: ContinuousClock.now, cpu: CPUTime.now, tally: tally())
    try await pass(claims, through: entrance)
    let after = (wall: ContinuousClock.now, cpu: CPUTime.now, tally: tally())
    result.operations += claims.count
    result.seconds += (after.wall - before.wall) / .seconds(1)
    result.userSeconds += after.cpu.user - before.cpu.user
    result.systemSeconds += after.cpu.system - before.cpu.system
    result.calls += after.tally.calls - before.tally.calls
    result.commits += after.tally.commits - before.tally.commits
  }

  /// Keeps the number of claims in flight that the options ask for. The distance between the claims of one device is
  /// a multiple of that number, so that they are in one row and stay in order.
  private func pass<E: Entrance>(_ claims: [E.Claim], through entrance: E) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      for row in 0..<options.inFlight {
        group.addTask { [inFlight = options.inFlight] in
          for index in stride(from: row, to: claims.count, by: inFlight) { try await entrance.pass(claims[index]) }
        }
      }
      try await group.waitForAll()
    }
  }
}
