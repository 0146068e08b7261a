import ByteCoding
import ConfigurationEngine
import Foundation
import Glibc
import Locking
import Logging
@testable import Observability
import TestSupport
import Testing

/// There is no message where one was expected.
private struct Missing: Error {}

/// A receiver that answers as it is told, and remembers what it got.
private final class Receiver: WebhookReceiver {
  private struct State {
    var answers: [Result<Int, WebhookFault>]
    var got: [(id: String, body: String)] = []
    var waiting: [(count: Int, continuation: CheckedContinuation<Void, Never>)] = []
  }

  private let state: LockedValue<State>
  private let failing: String?

  /// - Parameters:
  ///   - answers: The first answers; all later ones are 204.
  ///   - failing: The identifier of a message that is always answered with 500.
  init(_ answers: [Result<Int, WebhookFault>] = [], failing: String? = nil) {
    state = LockedValue(State(answers: answers))
    self.failing = failing
  }

  var got: [(id: String, body: String)] { state.withLock(\.got) }

  func post(_ body: [UInt8], fields: [(name: String, value: String)]) async throws(WebhookFault) -> WebhookAnswer {
    let id = fields.first { $0.name == "Webhook-Id" }?.value ?? ""
    let (answer, reached) = state.withLock { state in
      state.got.append((id, String(decoding: body, as: UTF8.self)))
      let answer = state.answers.isEmpty ? .success(204) : state.answers.removeFirst()
      let reached = state.waiting.filter { $0.count <= state.got.count }
      state.waiting.removeAll { $0.count <= state.got.count }
      return (answer, reached)
    }
    for waiter in reached { waiter.continuation.resume() }
    if let failing, id.utf8.elementsEqual(failing.utf8) { return WebhookAnswer(status: 500) }
    return WebhookAnswer(status: try answer.get())
  }

  /// Waits for `count` requests in all.
  func receives(_ count: Int) async {
    await withCheckedContinuation { continuation in
      let isReached = state.withLock { state in
        guard state.got.count < count else { return true }
        state.waiting.append((count, continuation))
        return false
      }
      if isReached { continuation.resume() }
    }
  }
}

@Suite("Messages for a receiver, from a queue on disk", .timeLimit(.minutes(1)))
struct WebhookQueueTests {
  private static let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

  /// A queue whose clock moves by ten minutes at each pause between two looks.
  private struct Bench {
    let folder: String
    let spool: WebhookSpool
    let registry = MetricsRegistry()
    let start = ContinuousClock.now
    let passed = LockedValue(Duration.zero)
    var count: Int { get throws { try spool.waiting().count } }

    /// - Parameter other: The folder in place of that of the bench.
    func queue(
      to receiver: any WebhookReceiver, from other: WebhookSpool? = nil, mostWaiting: Int = 100
    ) -> WebhookQueue {
      WebhookQueue(
        other ?? spool, mostWaiting: mostWaiting, secretFile: folder + "/secret",
        secrets: WebhookSecretFile.secrets(ofFile:), to: receiver, at: "example", program: "test",
        registry: registry, logger: Logger(label: "webhooks") { _ in SwiftLogNoOpLogHandler() },
        clock: WallClock { Timestamp(seconds: 1_800_000_000) },
        instant: { [start, passed] in start + passed.withLock(\.self) }
      ) { [passed] _ in
        try await Task.sleep(for: .milliseconds(1))
        passed.withLock { $0 += .seconds(600) }
      }
    }

    func metric(_ name: String) async -> String? {
      String(decoding: await registry.exposition(), as: UTF8.self).split(separator: "\n")
        .first { $0.hasPrefix(name + " ") }.map { String($0.dropFirst(name.count + 1)) }
    }
  }

  private func withBench(_ body: (Bench) async throws -> Void) async throws {
    try await Places.withTemporaryFolder { folder in
      try Self.secret.write(toFile: folder + "/secret", atomically: true, encoding: .utf8)
      try await body(Bench(folder: folder, spool: try WebhookSpool(folder + "/webhooks")))
    }
  }

  private func message(_ number: Int, at second: Int64 = 1_800_000_000) -> WebhookMessage {
    WebhookMessage("test", ["number": number], at: Timestamp(seconds: second + Int64(number)))
  }

  @Test("The signature is that of the specification's example, one for each secret")
  func signature() throws {
    let secrets = try #require(WebhookSecretFile.secrets(in: Array("# old\n\(Self.secret)\n\n\(Self.secret) \n".utf8)))
    let message = WebhookMessage(
      id: "msg_p5jXN8AQM9LWM0D4loKWxJek", instant: .init(seconds: 0), body: Array(#"{"test": 2432232314}"#.utf8))
    let fields = WebhookSignature.fields(for: message, secrets: secrets, at: Timestamp(seconds: 1_614_265_330))
    let signature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    #expect(fields.map(\.name) == ["Webhook-Id", "Webhook-Timestamp", "Webhook-Signature"])
    #expect(fields.map(\.value) == ["msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", "\(signature) \(signature)"])
  }

  @Test(
    "A file without secrets, or with a line that is none, is refused",
    arguments: ["", "# only a comment\n", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_c2hvcnQ=", "whsec_%%%%"])
  func secrets(file: String) {
    #expect(WebhookSecretFile.secrets(in: Array(file.utf8)) == nil)
    #expect(WebhookSecretFile.secrets(in: Array("\(Self.secret)\n\(file)x".utf8)) == nil)
  }

  @Test("Messages reach the receiver once each, and their files go")
  func delivery() async throws {
    try await withBench { bench in
      let receiver = Receiver()
      let queue = bench.queue(to: receiver)
      for number in 0..<20 { queue.add(message(number)) }
      let running = Task { await queue.run() }
      await receiver.receives(20)
      while try bench.count > 0, !Task.isCancelled { await Task.yield() }
      running.cancel()
      await running.value
      #expect(Set(receiver.got.map(\.id)).count == 20 && receiver.got.count == 20)
      let body = #"{"type":"test","timestamp":"2027-01-15T08:00:07Z","data":{"number":7}}"#
      #expect(receiver.got.contains { $0.body == body })
      #expect(await bench.metric(#"test_webhooks_total{result="delivered"}"#) == "20")
    }
  }

  @Test("The help of the metric states after how many refusals a message is given up")
  func help() async throws {
    var (plan, now, refusals) = (WebhookPlan(), ContinuousClock.now, 0)
    let ticket = try #require(WebhookTicket(name: "001800000000000.msg_1"))
    plan.add([ticket])
    while plan.count > 0, refusals < 100 {
      let next = plan.next(at: now)
      #expect(next == [ticket])
      refusals += 1
      _ = plan.note([(ticket, .refused(status: 400))], at: now, jitter: 1)
      now += .seconds(100_000)
    }
    let words = "given up after \(refusals) refusals or failed reads"
    try await withBench { bench in
      _ = bench.queue(to: Receiver())
      let help = await bench.metric("# HELP test_webhooks_total")
      #expect(help?.contains(words) == true, "\(help ?? "no help")")
    }
  }

  @Test("While the receiver does not answer, messages wait, and one at a time asks; what waits outlives the process")
  func outage() async throws {
    try await withBench { bench in
      let down = Receiver(Array(repeating: .failure(WebhookFault(reason: "refused")), count: 1000))
      let first = bench.queue(to: down)
      for number in 0..<3 { first.add(message(number)) }
      let running = Task { await first.run() }
      await down.receives(6)
      running.cancel()
      await running.value
      #expect(try bench.count == 3)
      // All three began together; from then on, each asked in turn.
      let ids = down.got.map(\.id)
      #expect(Set(ids[..<3]).count == 3 && Set(ids[3..<6]) == Set(ids[..<3]))
      let up = Receiver([.success(503), .success(429), .success(200)])
      let second = bench.queue(to: up)
      let again = Task { await second.run() }
      await up.receives(5)
      while try bench.count > 0, !Task.isCancelled { await Task.yield() }
      again.cancel()
      await again.value
      #expect(Set(up.got.map(\.id)) == Set(ids))
    }
  }

  @Test("A process that has left the folder to another one writes as long as the other one makes room")
  func left() async throws {
    try await withBench { bench in
      let receiver = Receiver()
      let queue = bench.queue(to: receiver, mostWaiting: 3)
      queue.add(message(0))
      let running = Task { await queue.run() }
      await receiver.receives(1)
      while try bench.count > 0, !Task.isCancelled { await Task.yield() }
      queue.stopSending()
      let dropped = #"test_webhooks_total{result="dropped"}"#
      for number in 1...10 {
        queue.add(message(number))
        while try bench.count == 0, await bench.metric(dropped) == "0", !Task.isCancelled { await Task.yield() }
        for ticket in try bench.spool.waiting() { try bench.spool.remove(ticket) }
      }
      #expect(await bench.metric(dropped) == "0")
      // The folder keeps its bound.
      for number in 11...14 { queue.add(message(number)) }
      running.cancel()
      await running.value
      #expect(try bench.count == 3)
      #expect(await bench.metric(dropped) == "1")
      #expect(receiver.got.count == 1)
    }
  }

  @Test("A message at which the receiver always fails does not keep the others back")
  func failing() async throws {
    try await withBench { bench in
      let failing = message(0)
      let receiver = Receiver(failing: failing.id)
      let queue = bench.queue(to: receiver)
      queue.add(failing)
      for number in 1...20 { queue.add(message(number)) }
      let running = Task { await queue.run() }
      while Set(receiver.got.map(\.id)).count < 21, !Task.isCancelled { await Task.yield() }
      while try bench.count > 1, !Task.isCancelled { await Task.yield() }
      // The receiver fails at the message that is left, and a new one comes.
      let before = receiver.got.count
      await receiver.receives(before + 2)
      queue.add(message(21))
      while !receiver.got.contains(where: { $0.body.contains(#""number":21"#) }), !Task.isCancelled {
        await Task.yield()
      }
      while try bench.count > 1, !Task.isCancelled { await Task.yield() }
      running.cancel()
      await running.value
      let delivered = receiver.got.map(\.id).filter { $0 != failing.id }
      #expect(delivered.count == 21 && Set(delivered).count == 21)
      #expect(try bench.spool.waiting().map(\.id) == [failing.id])
    }
  }

  @Test("A file that cannot be read does not keep the other messages back")
  func inaccessible() async throws {
    try await withBench { bench in
      // The path of a message with the longest identifier is too long for open(2), also for root, and those of the
      // others are not.
      var folder = bench.folder
      while folder.utf8.count < Int(PATH_MAX) - 60 {
        let rest = Int(PATH_MAX) - 60 - folder.utf8.count
        // Two bytes are the least for a slash and a name, so the step before the last leaves more than one.
        folder += "/" + String(repeating: "d", count: rest > 202 ? 200 : rest - 1)
        try #require(mkdir(folder, 0o700) == 0)
      }
      let spool = try WebhookSpool(folder)
      let name = "001700000000000." + String(repeating: "i", count: 64)
      let waiting = open(folder + "/waiting", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
      try #require(waiting >= 0)
      defer { close(waiting) }
      let file = openat(waiting, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
      try #require(file >= 0)
      close(file)
      // The folder could not be removed with this file.
      defer { unlinkat(waiting, name, 0) }
      let ticket = try #require(WebhookTicket(name: name))
      #expect(throws: WebhookSpool.Fault(place: "\(folder)/waiting/\(name)", number: ENAMETOOLONG)) {
        try spool.content(of: ticket)
      }
      let receiver = Receiver()
      let queue = bench.queue(to: receiver, from: spool)
      for number in 0..<20 {
        queue.add(WebhookMessage("test", ["number": number], at: Timestamp(seconds: 1_800_000_000), id: "m\(number)"))
      }
      let running = Task { await queue.run() }
      await receiver.receives(20)
      while try spool.waiting().count > 1, !Task.isCancelled { await Task.yield() }
      running.cancel()
      await running.value
      #expect(Set(receiver.got.map(\.id)).count == 20 && receiver.got.count == 20)
      #expect(try spool.waiting() == [ticket])
    }
  }

  @Test("A message whose folder cannot be flushed is sent, and does not count as dropped")
  func inDoubt() async throws {
    try await withBench { bench in
      let spool = try WebhookSpool(bench.folder + "/webhooks") { (folder: String) throws(WebhookSpool.Fault) in
        throw WebhookSpool.Fault(place: folder, number: EIO)
      }
      let (ticket, doubt) = try spool.write(message(0))
      #expect(try ticket != nil && spool.waiting().first == ticket)
      #expect(doubt == WebhookSpool.Fault(place: bench.folder + "/webhooks/waiting", number: EIO))
      let receiver = Receiver()
      let queue = bench.queue(to: receiver, from: spool)
      for number in 1..<4 { queue.add(message(number)) }
      let running = Task { await queue.run() }
      await receiver.receives(4)
      while try bench.count > 0, !Task.isCancelled { await Task.yield() }
      running.cancel()
      await running.value
      #expect(Set(receiver.got.map(\.id)).count == 4 && receiver.got.count == 4)
      #expect(await bench.metric(#"test_webhooks_total{result="dropped"}"#) == "0")
      #expect(await bench.metric(#"test_webhooks_total{result="delivered"}"#) == "4")
    }
  }

  /// Two messages that wait.
  private static let tickets = (1...2).compactMap { WebhookTicket(name: "001800000000000.msg_\($0)") }

  @Test("A refused message does not keep others back, and is given up after its last pause")
  func refusal() {
    let tickets = Self.tickets
    var (plan, now) = (WebhookPlan(), ContinuousClock.now)
    plan.add(tickets)
    var next = plan.next(at: now)
    #expect(next == tickets)
    var done = plan.note([(tickets[0], .refused(status: 400)), (tickets[1], .delivered)], at: now, jitter: 1)
    #expect(done == [tickets[1]])
    for pause in WebhookPlan.pausesAfterRefusals {
      next = plan.next(at: now)
      #expect(next == [] && done != [tickets[0]])
      now += pause
      next = plan.next(at: now)
      #expect(next == [tickets[0]])
      done = plan.note([(tickets[0], .refused(status: 400))], at: now, jitter: 1)
    }
    #expect(done == [tickets[0]] && plan.count == 0)
  }

  @Test("A receiver that takes one message and not another is paused for as long as it asks")
  func pause() {
    let tickets = Self.tickets
    var (plan, now) = (WebhookPlan(), ContinuousClock.now)
    plan.add(tickets)
    _ = plan.next(at: now)
    let busy = WebhookOutcome.unavailable("429", retryAfter: .seconds(600))
    let done = plan.note([(tickets[0], busy), (tickets[1], .delivered)], at: now, jitter: 1)
    #expect(done == [tickets[1]] && plan.count == 1)
    now += .seconds(599)
    var next = plan.next(at: now)
    #expect(next == [])
    now += .seconds(1)
    next = plan.next(at: now)
    #expect(next == [tickets[0]])
    // The longest request that is followed is an hour.
    _ = plan.note([(tickets[0], .unavailable("503", retryAfter: .seconds(60_000)))], at: now, jitter: 1)
    now += .seconds(3600)
    next = plan.next(at: now)
    #expect(next == [tickets[0]])
  }

  @Test("While the receiver fails, messages ask one at a time and in turn; those that failed come last")
  func turns() {
    let tickets = (1...4).compactMap { WebhookTicket(name: "001800000000000.msg_\($0)") }
    let failure = WebhookOutcome.unavailable("500", retryAfter: nil)
    var (plan, now) = (WebhookPlan(), ContinuousClock.now)
    plan.add([tickets[0], tickets[1]])
    var next = plan.next(at: now)
    _ = plan.note(next.map { ($0, failure) }, at: now, jitter: 1)
    // A new message has not failed yet.
    plan.add([tickets[2]])
    for expected in [tickets[2], tickets[0], tickets[1], tickets[2]] {
      now += .seconds(300)
      next = plan.next(at: now)
      #expect(next == [expected])
      _ = plan.note([(expected, failure)], at: now, jitter: 1)
      #expect(plan.count == 3)
    }
    plan.take(Array(tickets[..<3]))
    // A refused message that the receiver then fails at takes turns as well.
    now += .seconds(300)
    next = plan.next(at: now)
    #expect(next == [tickets[0]])
    _ = plan.note([(tickets[0], .refused(status: 400))], at: now, jitter: 1)
    now += .seconds(300)
    next = plan.next(at: now)
    #expect(next == [tickets[0], tickets[1], tickets[2]])
    _ = plan.note(
      [(tickets[0], failure), (tickets[1], .delivered), (tickets[2], failure)], at: now, jitter: 1)
    now += .seconds(300)
    next = plan.next(at: now)
    #expect(next == [tickets[0]])
    _ = plan.note([(tickets[0], failure)], at: now, jitter: 1)
    now += .seconds(300)
    next = plan.next(at: now)
    #expect(next == [tickets[2]])
    // A message that was not sent does not end the pause.
    _ = plan.note([(tickets[2], .inaccessible("EACCES"))], at: now, jitter: 1)
    plan.add([tickets[3]])
    next = plan.next(at: now)
    #expect(next == [tickets[3]])
  }

  @Test("Every message is sent once, also those of one millisecond beside a refused one that is due again")
  func once() {
    let names = ["bad"] + "hgfedcbaji".map(String.init)
    let tickets = names.compactMap { WebhookTicket(name: "001800000000000.msg_\($0)") }
    var (plan, now) = (WebhookPlan(), ContinuousClock.now)
    plan.add([tickets[0]])
    _ = plan.next(at: now)
    _ = plan.note([(tickets[0], .refused(status: 400))], at: now, jitter: 1)
    plan.add(Array(tickets[1...]))
    now += .seconds(3600)
    var sent: [WebhookTicket] = []
    for _ in 0..<5 {
      let next = plan.next(at: now)
      sent += next
      _ = plan.note(next.map { ($0, .delivered) }, at: now, jitter: 1)
    }
    #expect(sent.sorted() == tickets.sorted() && plan.count == 0, "\(sent.map(\.id))")
  }

  @Test("A message that always fails is asked about less and less often, although others are taken meanwhile")
  func held() {
    let tickets = (1...200).compactMap { WebhookTicket(name: "0018000000\(10_000 + $0).msg_\($0)") }
    var (plan, now, asked) = (WebhookPlan(), ContinuousClock.now, 0)
    plan.add([tickets[0]])
    for ticket in tickets.dropFirst() {
      plan.add([ticket])
      let next = plan.next(at: now)
      asked += next.count { $0 == tickets[0] }
      _ = plan.note(
        next.map { ($0, $0 == tickets[0] ? .unavailable("500", retryAfter: nil) : .delivered) }, at: now, jitter: 1)
      now += .seconds(5)
    }
    // Of 16 minutes: after 5, 5, 5, 10, 20, 35 … and every 300 seconds.
    #expect((6...14).contains(asked) && plan.count <= 2, "asked \(asked) times, \(plan.count) left")
  }

  @Test("A message that is known is not added twice, and one that is done with is not sent again, whatever its file")
  func known() {
    let tickets = Self.tickets
    var (plan, now) = (WebhookPlan(), ContinuousClock.now)
    plan.take(tickets)
    plan.add(tickets)
    #expect(plan.count == 2)
    _ = plan.next(at: now)
    _ = plan.note(tickets.map { ($0, .delivered) }, at: now, jitter: 1)
    plan.leave(tickets[0])
    plan.take([tickets[0]])
    now += .seconds(60)
    let next = plan.next(at: now)
    #expect(next == [] && plan.count == 0)
  }

  @Test("A file that cannot be read now keeps its message; one of others is named and removed")
  func unreadable() async throws {
    try await withBench { bench in
      let ticket = try #require(try bench.spool.write(message(1)).ticket)
      let place = bench.folder + "/webhooks/waiting/"
      guard case .message(let found) = try bench.spool.content(of: ticket) else { throw Missing() }
      #expect(found.id == ticket.id && found.body.starts(with: Array(#"{"type":"test""#.utf8)))
      try FileManager.default.createDirectory(
        atPath: place + "001800000000000.msg_folder", withIntermediateDirectories: true)
      let folder = try #require(WebhookTicket(name: "001800000000000.msg_folder"))
      #expect(try bench.spool.content(of: folder) == .foreign)
      try bench.spool.remove(ticket)
      #expect(try bench.spool.content(of: ticket) == .gone)
    }
  }

  @Test("A full queue drops what comes next and counts it; a foreign file in the folder is no message")
  func bounds() async throws {
    try await withBench { bench in
      let down = Receiver(Array(repeating: .success(503), count: 1000))
      let queue = bench.queue(to: down, mostWaiting: 2)
      try "{}".write(toFile: bench.folder + "/webhooks/waiting/notes.txt", atomically: true, encoding: .utf8)
      let empty = bench.folder + "/webhooks/waiting/001800000000000.msg_empty"
      _ = FileManager.default.createFile(atPath: empty, contents: nil)
      for number in 0..<5 { queue.add(message(number)) }
      let running = Task { await queue.run() }
      await down.receives(2)
      running.cancel()
      await running.value
      #expect(await bench.metric(#"test_webhooks_total{result="dropped"}"#).flatMap(Int.init) ?? 0 >= 3)
      #expect(try bench.count <= 3)
      #expect(FileManager.default.fileExists(atPath: bench.folder + "/webhooks/waiting/notes.txt"))
    }
  }

  @Test("One of two processes sends what is in a folder; when it leaves, the other does")
  func lock() async throws {
    try await withBench { bench in
      let now = Timestamp(seconds: 1_800_000_000)
      var locks = [try #require(try bench.spool.lock(at: now))]
      #expect(try bench.spool.lock(at: now) == nil)
      locks = []
      #expect(try bench.spool.lock(at: now) != nil && locks.isEmpty)
    }
  }

  @Test("What cannot be a folder for messages is an error with the place")
  func folder() async throws {
    try await Places.withTemporaryFolder { folder in
      try "x".write(toFile: folder + "/file", atomically: true, encoding: .utf8)
      let fault = #expect(throws: WebhookSpool.Fault.self) { try WebhookSpool(folder + "/file") }
      #expect(fault?.description == "\(folder)/file: Not a directory")
      #expect(throws: WebhookSpool.Fault.self) { try WebhookSpool(folder + "/missing/webhooks") }
    }
  }
}
