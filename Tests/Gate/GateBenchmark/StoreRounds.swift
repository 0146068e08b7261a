import AppAttest
import ArgumentParser
import AttestGate
import ByteCoding
import Cryptography
import Foundation
import Locking
import Postgres
import PostgresStore
import SQLiteStore

/// Admissions at a store that `scripts/bench --store` has filled: nonce, revocation and counter, durable. Signatures
/// are not verified, which costs the same whatever the store holds.
struct StoreRounds: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "store",
    abstract: "Measures admissions of random keys at a store that was filled before; a round for each line of input.",
    discussion: """
      The keys are SHA-256 of "key 0", "key 1" and so on. Each round prints one JSON object.
      """)

  @Option(help: "sqlite:///path or postgres://…")
  var store: String

  @Option(help: "How many keys the store holds.")
  var keys: Int

  @Option(help: "Admissions of a round.")
  var uses = 20_000

  @Option(help: "How many are on their way at once.")
  var inFlight = 64

  func validate() throws {
    guard keys >= inFlight, uses > 0, inFlight > 0 else {
      throw ValidationError("there have to be as many keys as uses in flight")
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
      // What admissions leave behind is a gate's to clear away, not theirs.
      try awaited { try await store.forgetNonces(issuedBy: .now()) }
    }
  }
}

/// So many rows of uses as are to be in flight. Each has keys of its own, so that no use overtakes another of its key.
private final class Rows: Sendable {
  private let store: any GateStore
  private let keys: Int
  private let count: Int
  /// The first counter of the next round; the store is as it was filled.
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
        else { throw FixtureFaults.malformed }
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
            // Whatever is not admitted would make the figures better than they are.
            guard answer == .admitted else { throw FixtureFaults.refused("\(answer)") }
          }
        }
      }
      try await group.waitForAll()
    }
  }
}

private enum FixtureFaults: Error {
  case malformed
  case refused(String)
}
