import ByteCoding
import Foundation
import Hummingbird
import Locking
import Logging
import MFADelivery
import MFADomain
import TestSupport
import Testing

@Suite("SMS by HTTP", .timeLimit(.minutes(2)))
struct TwilioTests {
  /// A request that the server received.
  struct Asked: Sendable {
    var path = ""
    var authorization = ""
    var body = ""
  }

  /// Calls `body` with a local server that answers with `statuses` in order, and repeats the last one.
  private func withServer(
    answering statuses: [HTTPResponse.Status],
    _ body: (TwilioProvider, LockedValue<[Asked]>) async throws -> Void
  ) async throws {
    let asked = LockedValue<[Asked]>([])
    let (ports, portFound) = AsyncStream<Int>.makeStream()
    let application = Application(
      responder: CallbackResponder { (request: Request, _: BasicRequestContext) in
        let text = String(buffer: try await request.body.collect(upTo: 1 << 16))
        let count = asked.withLock { asked in
          asked.append(
            Asked(path: request.uri.path, authorization: request.headers[.authorization] ?? "", body: text))
          return asked.count
        }
        let status = statuses[min(count, statuses.count) - 1]
        // A redirection leads back to this server, so that a client that follows it asks again.
        return Response(status: status, headers: status.kind == .redirection ? [.location: request.uri.path] : [:])
      },
      configuration: .init(address: .hostname("127.0.0.1", port: 0)),
      onServerRunning: { portFound.yield($0.localAddress?.port ?? 0) },
      logger: Logger(label: "twilio") { _ in SwiftLogNoOpLogHandler() })
    let running = Task { try await application.run() }
    defer { running.cancel() }
    var iterator = ports.makeAsyncIterator()
    let port = await iterator.next() ?? 0
    try await body(
      TwilioProvider(
        base: "http://127.0.0.1:\(port)", account: "AC1", token: "secret", sender: "+15550001111",
        domain: "example.com"), asked)
  }

  private func message() throws -> OutgoingMessage {
    OutgoingMessage(destination: .phone(try PhoneNumber("+1234567890")), code: "042042", lifetime: .seconds(300))
  }

  @Test("A-220 an SMS is sent as a form with number, sender and text, with basic authentication")
  func form() async throws {
    try await withServer(answering: [.created]) { provider, asked in
      try await provider.deliver(message())
      let request = asked.withLock { $0[0] }
      #expect(request.path == "/2010-04-01/Accounts/AC1/Messages.json")
      #expect(request.authorization == "Basic " + Base64.encode(Array("AC1:secret".utf8)))
      #expect(
        request.body
          == "To=%2B1234567890&From=%2B15550001111&Body=Your%20OTP%20is%20042042%0A%0A%40example.com%20%23042042")
    }
  }

  @Test("A-229 an SMS announces when a device can be added and the code that stops it; another reports completion")
  func recovery() async throws {
    try await withServer(answering: [.created, .created]) { provider, asked in
      let phone = OutgoingMessage.Destination.phone(try PhoneNumber("+1234567890"))
      let ready = Timestamp(seconds: 1_767_225_600)
      for content in [
        OutgoingMessage.Content.recoveryStarted(stopCode: "ABCD2345", readyAt: ready), .recoveryCompleted,
      ] {
        try await provider.deliver(OutgoingMessage(destination: phone, content: content, lifetime: .seconds(86400)))
      }
      let texts = asked.withLock { $0.map { $0.body.removingPercentEncoding ?? "" } }
      #expect(texts[0].contains("example.com. From 2026-01-01T00:00:00Z on, a new device can be added"))
      #expect(texts[0].contains("with the code ABCD2345.") && !texts[0].contains("OTP") && !texts[0].contains("#"))
      #expect(texts[1].contains("Your account at example.com was recovered"))
    }
  }

  @Test("a redirect is not followed: the code goes only to the server that the configuration names")
  func redirect() async throws {
    try await withServer(answering: [.temporaryRedirect, .created]) { provider, asked in
      await #expect(throws: DeliveryFailure.self) { try await provider.deliver(message()) }
      #expect(asked.withLock(\.count) == 1)
    }
  }

  @Test("B-084 the text ends with the line that binds the code to its domain")
  func autofill() async throws {
    try await withServer(answering: [.created]) { provider, asked in
      try await provider.deliver(message())
      #expect(asked.withLock { $0[0].body.hasSuffix("%40example.com%20%23042042") })
    }
  }

  @Test(
    "A-220 the failure says whether the refusal is temporary or permanent",
    arguments: [
      (HTTPResponse.Status.badRequest, false), (.unauthorized, false), (.tooManyRequests, true), (.badGateway, true),
    ])
  func refused(_ status: HTTPResponse.Status, _ isTemporary: Bool) async throws {
    try await withServer(answering: [status]) { provider, _ in
      let message = try message()
      await #expect(throws: DeliveryFailure(reason: "status \(status.code)", isTemporary: isTemporary)) {
        try await provider.deliver(message)
      }
    }
  }

  @Test("a provider whose answer drips does not hold the queue: the status counts, and the body is not waited for")
  func drips() async throws {
    let server = try DrippingServer()
    defer { server.stop() }
    let provider = TwilioProvider(
      base: server.base, account: "AC1", token: "secret", sender: "+15550001111", domain: "example.com",
      exchangeTime: .seconds(6))
    try await provider.deliver(message())
    #expect(server.paths == ["/2010-04-01/Accounts/AC1/Messages.json"])
  }

  // Within a minute: after 90 s the HTTP library gives up by itself, with the same words.
  @Test(
    "a provider whose head drips fails in time, and whether the message was accepted is in doubt",
    .timeLimit(.minutes(1)))
  func dripsFromTheStart() async throws {
    let server = try DrippingServer(opening: Array("HTTP/1.1 201 Created\r\nX-Slow: ".utf8))
    defer { server.stop() }
    let provider = TwilioProvider(
      base: server.base, account: "AC1", token: "secret", sender: "+15550001111", domain: "example.com",
      exchangeTime: .seconds(3))
    let message = try message()
    let failure = await #expect(throws: DeliveryFailure.self) { try await provider.deliver(message) }
    #expect(failure?.isTemporary == true && failure?.isDoubtful == true)
  }

  @Test("A-220 a message is sent again after a temporary failure")
  func retries() async throws {
    try await withServer(answering: [.badGateway, .badGateway, .created]) { provider, asked in
      var schedule = QueuedOutbox.Schedule()
      schedule.pause = .milliseconds(1)
      let outbox = QueuedOutbox(
        phone: provider, email: nil, schedule: schedule,
        logger: Logger(label: "outbox") { _ in SwiftLogNoOpLogHandler() })
      let running = Task { try await outbox.run() }
      outbox.send(try message())
      while asked.withLock({ $0.count }) < 3, !Task.isCancelled { await Task.yield() }
      running.cancel()
      try? await running.value
      #expect(asked.withLock { $0.count } == 3)
    }
  }
}
