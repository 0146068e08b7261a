import Foundation
import GateProcesses
import PostgresServers
import TestSupport
import Testing
import Transport
import TransportEngine

/// The answers that the gate has given its clients, which no crash may undo.
private final class Promises: Sendable {
  struct Login: Sendable {
    let phone: Int
    let counter: UInt32
    let credentials: HeaderFields
  }

  struct Content: Sendable {
    /// Phones whose registration was answered with 200.
    var phones: [Phone] = []
    /// Logins whose upgrade was answered with 101.
    var logins: [Login] = []
    /// Logins during which the gate was killed before it answered.
    var unanswered: [Login] = []
    /// The highest sent counter of each phone.
    var counters: [Int: UInt32] = [:]
  }

  private let content = Watched(Content())

  var kept: Content { content.value }
  var counts: (phones: Int, logins: Int) { (kept.phones.count, kept.logins.count) }
  func update(_ change: (inout Content) -> Void) { content.update(change) }

  func waitForLogins(_ count: Int) async throws {
    try await content.wait(for: "\(count) logins", within: .seconds(30)) { $0.logins.count >= count ? () : nil }
  }
}

@Suite("Kills of a gate", .timeLimit(.minutes(10)))
struct CrashTests {
  enum Memory: CaseIterable { case sqlite, postgres }

  @Test(
    "After ten kills at random moments, a gate has lost no key and accepts no used credentials",
    arguments: Memory.allCases)
  func crashes(_ memory: Memory) async throws {
    let promises = Promises()
    var random = SystemRandomNumberGenerator()
    var checked = (phones: 0, logins: 0)
    try await EchoProcess.serving { upstream in
      var plan = GatePlan()
      plan.routes = [("/", upstream)]
      if memory == .postgres { plan.storeURL = try await PostgresServer.shared().newURL() }
      try await Places.withTemporaryFolder { folder in
        for _ in 1...10 {
          let gate = try await GateProcess(plan, in: folder + "/gate")
          defer { gate.process.kill() }
          let (phones, logins) = promises.counts
          try await Self.check(
            promises, phones: checked.phones..<phones, logins: checked.logins..<logins, at: gate)
          checked = (phones, logins)
          async let clients: Void = Self.work(at: gate, promises)
          try await promises.waitForLogins(logins + 4)
          // The moment is random: between any two steps of the clients.
          try await Task.sleep(for: .microseconds(Int.random(in: 0...150_000, using: &random)))
          try await gate.crash()
          await clients
        }
        let gate = try await GateProcess(plan, in: folder + "/gate")
        defer { gate.process.kill() }
        let (phones, logins) = promises.counts
        try await Self.check(promises, phones: 0..<phones, logins: 0..<logins, at: gate)
        #expect(phones >= 10 && logins >= 40)
      }
    }
  }

  /// Runs four clients that register phones and log in with them until the gate is gone.
  private static func work(at gate: GateProcess, _ promises: Promises) async {
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<4 {
        group.addTask {
          // The kill of the gate causes the error. `check` detects any other cause.
          while !gate.process.hasEnded { try? await visit(gate, promises) }
        }
      }
    }
  }

  /// Registers a new phone and logs in five times.
  private static func visit(_ gate: GateProcess, _ promises: Promises) async throws {
    let visitor = try Visitor(to: gate)
    let phone = try Phone(of: gate.authority)
    try await visitor.register(phone)
    promises.update { $0.phones.append(phone) }
    let index = try #require(promises.kept.phones.firstIndex { $0.keyID == phone.keyID })
    for counter in UInt32(1)...5 {
      let credentials = try await phone.credentials(over: visitor.challenge(), counter: counter)
      let login = Promises.Login(phone: index, counter: counter, credentials: credentials)
      promises.update { $0.counters[index] = counter }
      do throws(ClientError) {
        let socket = try await visitor.open("/", credentials)
        promises.update { $0.logins.append(login) }
        await socket.close()
      } catch {
        promises.update { $0.unanswered.append(login) }
        throw error
      }
    }
  }

  /// Checks that `gate` remembers the answered registrations of `phones` and the answered `logins`.
  private static func check(
    _ promises: Promises, phones: Range<Int>, logins: Range<Int>, at gate: GateProcess
  ) async throws {
    let visitor = try Visitor(to: gate)
    let kept = promises.kept
    let replays = try await gather(logins.count, workers: 8) { number in
      try await visitor.refusal(of: kept.logins[logins.lowerBound + number].credentials)
    }
    #expect(replays.allSatisfy { $0 == "nonce_used" }, "\(replays)")
    let old = try await gather(logins.count, workers: 8) { number in
      let login = kept.logins[logins.lowerBound + number]
      let phone = kept.phones[login.phone]
      return try await visitor.refusal(of: phone.credentials(over: visitor.challenge(), counter: login.counter))
    }
    #expect(old.allSatisfy { $0 == "counter_replayed" }, "\(old)")
    // Credentials without an answer may work once or not at all.
    promises.update { $0.unanswered = [] }
    for login in kept.unanswered {
      _ = try await visitor.refusal(of: login.credentials)
      #expect(try await visitor.refusal(of: login.credentials) != nil)
    }
    let next = try await gather(phones.count, workers: 8) { number in
      let index = phones.lowerBound + number
      let counter = (kept.counters[index] ?? 0) + 1
      promises.update { $0.counters[index] = counter }
      return try await visitor.refusal(of: kept.phones[index].credentials(over: visitor.challenge(), counter: counter))
    }
    #expect(next.allSatisfy { $0 == nil }, "\(next)")
  }
}
