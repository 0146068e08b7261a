import Locking
import Logging
import MFADelivery
import MFADomain
import MFAFixtures
import ServiceLifecycle
import Testing

@Suite("Queued outbox", .serialized, .timeLimit(.minutes(2)))
struct QueuedOutboxTests {
  /// Accepts messages once it is open. Until then, each delivery waits.
  private final class Counter: MessageProvider {
    private struct State {
      var isOpen: Bool
      var inside = 0
      var mostInside = 0
      var codes: [String] = []
    }

    private let state: LockedValue<State>

    init(isOpen: Bool) { state = LockedValue(State(isOpen: isOpen)) }

    var codes: [String] { state.withLock { $0.codes } }
    var mostInside: Int { state.withLock { $0.mostInside } }

    func open() { state.withLock { $0.isOpen = true } }

    func deliver(_ message: OutgoingMessage) async throws(DeliveryFailure) {
      state.withLock { state in
        state.inside += 1
        state.mostInside = max(state.mostInside, state.inside)
      }
      defer { state.withLock { $0.inside -= 1 } }
      while !state.withLock({ $0.isOpen }) {
        if Task.isCancelled { throw DeliveryFailure(reason: "cancelled", isTemporary: true) }
        await Task.yield()
      }
      state.withLock { $0.codes.append(message.code ?? "") }
    }

    /// Waits until `count` deliveries are in progress at the same time.
    func hold(_ count: Int) async {
      while state.withLock({ $0.inside }) < count, !Task.isCancelled { await Task.yield() }
    }

    /// Waits until `count` messages are accepted.
    func take(_ count: Int) async { while codes.count < count, !Task.isCancelled { await Task.yield() } }
  }

  private func sms(_ code: String, lifetime: Duration = .seconds(300)) throws -> OutgoingMessage {
    OutgoingMessage(destination: .phone(try PhoneNumber("+1234567890")), code: code, lifetime: lifetime)
  }

  private func mail(_ code: String) throws -> OutgoingMessage {
    OutgoingMessage(
      destination: .email(try EmailAddress("ada@example.org")), code: code, lifetime: .seconds(300))
  }

  private static let silent = Logger(label: "outbox") { _ in SwiftLogNoOpLogHandler() }

  /// Calls `body` while the outbox runs.
  private func running(_ outbox: QueuedOutbox, _ body: () async throws -> Void) async throws {
    let task = Task { try await outbox.run() }
    let result: Result<Void, any Error>
    do { result = .success(try await body()) } catch { result = .failure(error) }
    task.cancel()
    try? await task.value
    try result.get()
  }

  @Test("X-030 a mail server that hangs delays no SMS")
  func separate() async throws {
    let (phone, email) = (Counter(isOpen: true), Counter(isOpen: false))
    let outbox = QueuedOutbox(phone: phone, email: email, logger: Self.silent)
    try await running(outbox) {
      for number in 0..<10 { outbox.send(try mail("\(number)")) }
      await email.hold(1)
      outbox.send(try sms("042042"))
      await phone.take(1)
      #expect(email.codes.isEmpty)
    }
  }

  @Test("a provider receives at most four messages at the same time")
  func several() async throws {
    let phone = Counter(isOpen: false)
    let outbox = QueuedOutbox(phone: phone, email: nil, logger: Self.silent)
    try await running(outbox) {
      for number in 0..<10 { outbox.send(try sms("\(number)")) }
      await phone.hold(4)
      phone.open()
      await phone.take(10)
      #expect(phone.mostInside == 4)
    }
  }

  @Test("a code that expires in the queue is not sent, and the log reports the expiry without the code")
  func expired() async throws {
    let phone = Counter(isOpen: false)
    let log = CapturedLog()
    var schedule = QueuedOutbox.Schedule()
    schedule.mostAtOnce = 1
    let outbox = QueuedOutbox(phone: phone, email: nil, schedule: schedule, logger: log.logger)
    try await running(outbox) {
      outbox.send(try sms("111111"))
      outbox.send(try sms("222222", lifetime: .zero))
      outbox.send(try sms("333333"))
      await phone.hold(1)
      phone.open()
      await phone.take(2)
      #expect(phone.codes == ["111111", "333333"])
      let expired = log.lines.filter { $0.message == "message expired" }
      #expect(expired.count == 1 && expired.first?.metadata["kind"] == "sms")
      #expect(!log.lines.contains { "\($0)".contains("222222") || "\($0)".contains("1234567890") })
    }
  }

  /// Fails the first `failures` deliveries of each content.
  private final class Broken: MessageProvider {
    let tries = LockedValue<[OutgoingMessage.Content]>([])
    let failures: Int
    let isDoubtful: Bool

    init(failures: Int, isDoubtful: Bool = false) {
      self.failures = failures
      self.isDoubtful = isDoubtful
    }

    func deliver(_ message: OutgoingMessage) async throws(DeliveryFailure) {
      let count = tries.withLock { tries in
        tries.append(message.content)
        return tries.count { $0 == message.content }
      }
      if count <= failures { throw DeliveryFailure(reason: "down", isTemporary: true, isDoubtful: isDoubtful) }
    }
  }

  @Test("a recovery notice is retried throughout an outage without delaying a code, and a code is given up")
  func outage() async throws {
    let phone = Broken(failures: 6)
    let log = CapturedLog()
    var schedule = QueuedOutbox.Schedule()
    (schedule.mostAtOnce, schedule.pause, schedule.rest, schedule.longestRest) = (
      1, .zero, .milliseconds(100), .milliseconds(200)
    )
    let outbox = QueuedOutbox(phone: phone, email: nil, schedule: schedule, logger: log.logger)
    let number = OutgoingMessage.Destination.phone(try PhoneNumber("+1234567890"))
    try await running(outbox) {
      outbox.send(OutgoingMessage(destination: number, content: .recoveryCompleted, lifetime: .seconds(3600)))
      outbox.send(try sms("111111"))
      try await log.line(saying: "message failed")
      try await log.line(saying: "message sent")
      // The code fails three times while the notice waits for its next attempts.
      let tries = phone.tries.withLock(\.self)
      let lastOfCode = try #require(tries.lastIndex(of: .code("111111")))
      let lastOfNotice = try #require(tries.lastIndex(of: .recoveryCompleted))
      #expect(lastOfCode < lastOfNotice)
      #expect(phone.tries.withLock { $0.count { $0 == .recoveryCompleted } } == 7)
      #expect(phone.tries.withLock { $0.count { $0 == .code("111111") } } == 3)
      #expect(log.lines(saying: "message failed") == 1)
    }
  }

  @Test("a notice that a provider may have accepted is retried three more times, and not until it expires")
  func doubt() async throws {
    let phone = Broken(failures: .max, isDoubtful: true)
    let log = CapturedLog()
    var schedule = QueuedOutbox.Schedule()
    (schedule.pause, schedule.rest, schedule.longestRest) = (.zero, .milliseconds(10), .milliseconds(10))
    let outbox = QueuedOutbox(phone: phone, email: nil, schedule: schedule, logger: log.logger)
    let number = OutgoingMessage.Destination.phone(try PhoneNumber("+1234567890"))
    try await running(outbox) {
      outbox.send(OutgoingMessage(destination: number, content: .recoveryCompleted, lifetime: .seconds(3600)))
      try await log.line(saying: "message failed")
      #expect(phone.tries.withLock(\.count) == 3 + 3)
    }
  }

  @Test("a notice that waits for a retry expires after its lifetime, and is lost at shutdown")
  func restEnds() async throws {
    let phone = Broken(failures: .max)
    let log = CapturedLog()
    var schedule = QueuedOutbox.Schedule()
    (schedule.pause, schedule.rest) = (.zero, .milliseconds(50))
    let number = OutgoingMessage.Destination.phone(try PhoneNumber("+1234567890"))
    let brief = QueuedOutbox(phone: phone, email: nil, schedule: schedule, logger: log.logger)
    try await running(brief) {
      brief.send(OutgoingMessage(destination: number, content: .recoveryCompleted, lifetime: .milliseconds(20)))
      try await log.line(saying: "message expired")
    }
    schedule.rest = .seconds(3600)
    let outbox = QueuedOutbox(phone: phone, email: nil, schedule: schedule, logger: log.logger)
    let group = ServiceGroup(services: [outbox], logger: Self.silent)
    let running = Task { try await group.run() }
    let before = log.lines(saying: "delivery attempt failed")
    outbox.send(OutgoingMessage(destination: number, content: .recoveryCompleted, lifetime: .seconds(3600)))
    while log.lines(saying: "delivery attempt failed") < before + 3, !Task.isCancelled { await Task.yield() }
    await group.triggerGracefulShutdown()
    try await running.value
    #expect(log.lines(saying: "message lost") == 1)
  }

  @Test("messages that are queued at shutdown are sent")
  func drained() async throws {
    let phone = Counter(isOpen: false)
    let outbox = QueuedOutbox(phone: phone, email: nil, logger: Self.silent)
    let group = ServiceGroup(services: [outbox], logger: Self.silent)
    let running = Task { try await group.run() }
    for number in 0..<6 { outbox.send(try sms("\(number)")) }
    await phone.hold(4)
    await group.triggerGracefulShutdown()
    phone.open()
    try await running.value
    #expect(phone.codes.count == 6)
  }

  @Test("a provider that hangs does not prevent shutdown, and the log reports the lost messages")
  func bounded() async throws {
    let phone = Counter(isOpen: false)
    let log = CapturedLog()
    var schedule = QueuedOutbox.Schedule()
    schedule.patience = .milliseconds(50)
    let outbox = QueuedOutbox(phone: phone, email: nil, schedule: schedule, logger: log.logger)
    let group = ServiceGroup(services: [outbox], logger: Self.silent)
    let running = Task { try await group.run() }
    for number in 0..<6 { outbox.send(try sms("\(number)")) }
    await phone.hold(4)
    await group.triggerGracefulShutdown()
    try await running.value
    #expect(phone.codes.isEmpty)
    #expect(log.lines.filter { $0.message == "message lost" }.count == 6)
  }
}
