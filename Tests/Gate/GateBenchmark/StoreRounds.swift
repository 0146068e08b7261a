import AppAttest
import ArgumentParser
import AttestGate
import ByteCoding
import Cryptography
import Databases
import Foundation
import Locking
import PostgresStore
import SQLiteStore

/// Measures admissions at a store that `scripts/bench --store` has filled: nonce, revocation and counter, durable.
/// Signatures are not verified: their cost does not depend on the store.
struct StoreRounds: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "store",
    abstract: "Measures admissions of random keys at a filled store; one round for each line of input.",
    discussion: """
      The keys are SHA-256 of "key 0", "key 1" and so on. Each round prints one JSON object.
      """)

  @Option(help: "sqlite:///path or postgres://…")
  var store: String

  @Option(help: "The number of keys in the store.")
  var keys: Int

  @Option(help: "The number of admissions in a round.")
  var uses = 20_000

  @Option(help: "The number of admissions in flight.")
  var inFlight = 64

  func validate() throws {
    guard keys >= inFlight, uses > 0, inFlight > 0 else {
      throw ValidationError("--keys must be at least --in-flight, and --uses and --in-flight must be positive")
    }
  }

  func run() throws {
    let store: any GateStore =
      if store.hasPrefix("sqlite://") {
        SQLiteStore(path: String(store.dropFirst("sqlite://".count)))
      } else {
        PostgresStore(try ConnectionParameters(url: store))
      }
    let rows = Rows(store: store, keys: keys, count: inFlight)
    try awaited { try await store.open() }
    print("ready")
    fflush(nil)
    while readLine() != nil {
      let uses = try rows.mint(uses)
      let before = (wall: ContinuousClock.now, cpu: CPUTime.now)
      try awaited { try await rows.admit(uses) }
      let cpu = CPUTime.now
      let seconds = (ContinuousClock.now - before.wall) / .seconds(1)
      let microseconds = (cpu.user + cpu.system - before.cpu.user - before.cpu.system) * 1e6 / Double(self.uses)
      print(#"{"cpu_us": \#(microseconds), "seconds": \#(seconds)}"#)
      fflush(nil)
      // The gate removes spent nonces in its maintenance, so this is not measured.
      try awaited { try await store.forgetNonces(issuedBy: .now()) }
    }
  }
}

/// Rows of uses, one for each use in flight. Each row has its own keys, so that the uses of a key stay in order.
private final class Rows: Sendable {
  private let store: any GateStore
  private let keys: Int
  private let count: Int
  /// The first counter of the next round. The first round expects the store as it was filled.
  private let steps = LockedValue(UInt32(1))

  init(store: any GateStore, keys: Int, count: Int) {
    self.store = store
    self.keys = keys
    self.count = count
  }

  func mint(_ uses: Int) throws -> [[KeyUse]] {
    let now = Timestamp.now()
    let first = steps.withLock { steps in
      defer { steps += UInt32(uses / count + 1) }
      return steps
    }
    return try (0..<count).map { row in
      try (0..<(uses / count)).map { step in
        let number = Int.random(in: 0..<(keys / count)) * count + row
        let time = withUnsafeBytes(of: UInt64(now.milliseconds).bigEndian) { Array($0.suffix(6)) }
        guard let keyID = KeyID(bytes: SHA256.hash(Array("key \(number)".utf8))),
          let nonce = Nonce(bytes: [1] + time + SecureRandom.bytes(25))
        else { throw FixtureErrors.malformed }
        return KeyUse(keyID: keyID, counter: SignCount(first + UInt32(step)), nonce: nonce, window: .none, at: now)
      }
    }
  }

  func admit(_ rows: [[KeyUse]]) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      for row in rows {
        group.addTask { [store] in
          for use in row {
            let answer = try await store.admit(use)
            // A refused use would improve the figures.
            guard answer == .admitted else { throw FixtureErrors.refused("\(answer)") }
          }
        }
      }
      try await group.waitForAll()
    }
  }
}

private enum FixtureErrors: Error {
  case malformed
  case refused(String)
}
