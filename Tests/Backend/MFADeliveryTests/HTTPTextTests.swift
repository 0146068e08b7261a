import ByteCoding
import Foundation
import Wire
import Hummingbird
import Locking
import Logging
import MFADelivery
import MFADomain
import TestSupport
import Testing

@Suite("SMS by a template of a request", .timeLimit(.minutes(2)))
struct HTTPTextTests {
  private struct Asked: Sendable {
    var line = ""
    var fields: [String: String] = [:]
    var body = ""
  }

  /// Calls `body` with the origin of a server that answers each path `/N…` with the status N, and keeps what it got.
  private func withServer(_ body: (String, LockedValue<[Asked]>) async throws -> Void) async throws {
    let asked = LockedValue<[Asked]>([])
    let (ports, portFound) = AsyncStream<Int>.makeStream()
    let application = Application(
      responder: CallbackResponder { (request: Request, _: BasicRequestContext) in
        let text = String(buffer: try await request.body.collect(upTo: 1 << 16))
        let fields = request.headers.map { ($0.name.rawName.lowercased(), $0.value) }
        asked.withLock {
          $0.append(
            Asked(
              line: "\(request.method) \(request.uri.string)",
              fields: Dictionary(fields, uniquingKeysWith: { first, _ in first }), body: text))
        }
        let status = Int(request.uri.path.dropFirst().prefix(3)) ?? 404
        return Response(status: .init(code: status), headers: status == 302 ? [.location: "/200"] : [:])
      },
      configuration: .init(address: .hostname("127.0.0.1", port: 0)),
      onServerRunning: { portFound.yield($0.localAddress?.port ?? 0) },
      logger: Logger(label: "sms") { _ in SwiftLogNoOpLogHandler() })
    let running = Task { try await application.run() }
    defer { running.cancel() }
    var iterator = ports.makeAsyncIterator()
    try await body("http://127.0.0.1:\(await iterator.next() ?? 0)/", asked)
  }

  private func message(_ languages: String = "") throws -> OutgoingMessage {
    OutgoingMessage(
      destination: .phone(try PhoneNumber("+1234567890")), code: "042042", lifetime: .seconds(300),
      languages: Languages(acceptLanguage: languages))
  }

  private static let text = "Your OTP is 042042\n\n@ex\"ample.com #042042"

  private func provider(
    _ source: HTTPTextTemplate.Source, origin: String, token: String? = nil, expected: ClosedRange<Int> = 200...299,
    templates: MessageTemplates = .builtIn
  ) throws -> HTTPTextProvider {
    let reader: (@Sendable () throws -> String)? = token.map { text in { @Sendable in text } }
    return HTTPTextProvider(
      try HTTPTextTemplate(source), origin: origin, sender: "+1555 & \"Co\"", token: reader, expected: expected,
      domain: "ex\"ample.com", templates: templates, proxies: ProxyVariables { _ in nil })
  }

  @Test("one request a message: JSON, a form, or a query alone; values are escaped as chosen")
  func requests() async throws {
    try await withServer { origin, asked in
      let json = HTTPTextTemplate.Source(
        url: origin + "202/v1/{{to_digits}}", headers: ["Authorization: Bearer {{token}}", "X-Kind: otp"],
        body: #"{"to": ["{{to}}"], "from": "{{from}}", "text": "{{text}}"}"#, escape: .json, hasToken: true,
        hasSender: true)
      try await provider(json, origin: origin, token: "to-ken").deliver(message())
      let form = HTTPTextTemplate.Source(
        url: origin + "200/send", headers: ["authorization: Basic {{ basic }}"], body: "to={{to}}&body={{text}}",
        escape: .form, hasToken: true)
      try await provider(form, origin: origin, token: "ada:pass").deliver(message())
      let query = HTTPTextTemplate.Source(method: "GET", url: origin + "200/get?to={{to}}&text={{text}}")
      let german = try MessageTemplates([("code.sms.de.txt", Array("Ihr Code: {{code}} & mehr".utf8))], service: "")
      try await provider(query, origin: origin, templates: german).deliver(message("de"))
      let got = asked.withLock { $0 }
      try #require(got.count == 3)
      #expect(got[0].line == "POST /202/v1/1234567890")
      #expect(got[0].fields["authorization"] == "Bearer to-ken" && got[0].fields["x-kind"] == "otp")
      #expect(got[0].fields["content-type"] == "application/json")
      let body = try #require(try JSONSerialization.jsonObject(with: Data(got[0].body.utf8)) as? [String: Any])
      #expect(body["to"] as? [String] == ["+1234567890"] && body["from"] as? String == "+1555 & \"Co\"")
      #expect(body["text"] as? String == Self.text)
      #expect(got[1].fields["authorization"] == "Basic " + Base64.encode(Array("ada:pass".utf8)))
      #expect(got[1].fields["content-type"] == "application/x-www-form-urlencoded")
      let escaped = "Your%20OTP%20is%20042042%0A%0A%40ex%22ample.com%20%23042042"
      #expect(got[1].body == "to=%2B1234567890&body=\(escaped)")
      #expect(got[2].line == "GET /200/get?to=%2B1234567890&text=Ihr%20Code%3A%20042042%20%26%20mehr")
      #expect(got[2].body.isEmpty && got[2].fields["content-type"] == nil)
    }
  }

  @Test("the expected status is a success; others fail, for a while or for good; a redirect is not followed")
  func statuses() async throws {
    try await withServer { origin, asked in
      func failure(_ status: Int, _ expected: ClosedRange<Int> = 200...299) async throws -> DeliveryFailure? {
        let source = HTTPTextTemplate.Source(url: origin + "\(status)?to={{to}}&t={{text}}")
        let (provider, message) = (try provider(source, origin: origin, expected: expected), try message())
        do throws(DeliveryFailure) {
          try await provider.deliver(message)
          return nil
        } catch { return error }
      }
      #expect(try await failure(202, 202...202) == nil)
      #expect(try await failure(200, 202...202) == DeliveryFailure(reason: "status 200", isTemporary: false))
      for (status, isTemporary) in [(302, false), (400, false), (401, false), (408, true), (429, true), (502, true)] {
        #expect(try await failure(status) == DeliveryFailure(reason: "status \(status)", isTemporary: isTemporary))
      }
      #expect(asked.withLock { $0.count } == 8)
      // A probe asks for no message, and any answer will do.
      let source = HTTPTextTemplate.Source(url: origin + "200/{{to}}/{{text}}")
      try await provider(source, origin: origin).probe()
      #expect(asked.withLock { $0.last?.line } == "GET /")
    }
    let source = HTTPTextTemplate.Source(url: "http://127.0.0.1:1/{{to}}/{{text}}")
    let closed = try provider(source, origin: "http://127.0.0.1:1/")
    await #expect(throws: DeliveryFailure.self) { try await closed.probe() }
  }

  @Test("a token with a line end begins no header field: nothing is sent, and the reason does not contain it")
  func token() async throws {
    try await withServer { origin, asked in
      let source = HTTPTextTemplate.Source(
        url: origin + "200/{{to}}/{{text}}", headers: ["X-Key: {{token}}"], hasToken: true)
      let provider = try provider(source, origin: origin, token: "a\r\nX-Other: b")
      let message = try message()
      let failure = await #expect(throws: DeliveryFailure.self) { try await provider.deliver(message) }
      #expect(failure?.isTemporary == false && failure?.reason.contains("X-Other") == false)
      #expect(asked.withLock { $0.isEmpty })
    }
  }

  @Test("a provider whose answer drips fails in time, and whether the message was accepted is in doubt")
  func drips() async throws {
    let server = try DrippingServer(opening: Array("HTTP/1.1 201 Created\r\nX-Slow: ".utf8))
    defer { server.stop() }
    let provider = HTTPTextProvider(
      try HTTPTextTemplate(.init(url: server.base + "/{{to}}/{{text}}")), origin: server.base, domain: "d",
      exchangeTime: .milliseconds(300), proxies: ProxyVariables { _ in nil })
    let message = try message()
    let failure = await #expect(throws: DeliveryFailure.self) { try await provider.deliver(message) }
    #expect(failure?.isTemporary == true && failure?.isDoubtful == true)
  }

  private static let place = "https://sms.example.com/send"
  private static let body = #"{"to": "{{to}}", "text": "{{text}}"}"#

  private static let cases: [(HTTPTextTemplate.Source, String)] = [
    (.init(url: place), "url: has no {{to}} or {{to_digits}}: no provider could know the recipient"),
    (.init(url: place, body: "{}", escape: .json), "body: has no {{to}} or {{to_digits}}: "),
    (.init(url: place, body: #"{"to": "{{to}}"}"#, escape: .json), "body: has no {{text}}: the message would be"),
    (.init(url: place, body: body), "escape: missing: choose json or form"),
    (.init(method: "GET", url: place, body: body, escape: .json), "body: cannot be set for the method GET"),
    (.init(method: "PUT", url: place), "method: must be GET or POST"),
    (.init(url: place + "?to={{to}}&t={{text}}", escape: .form), "escape: has no effect without a body"),
    (
      .init(url: place, body: #"{"to": {{to}}, "text": "{{text}}"}"#, escape: .json),
      "body: is not JSON with its values"
    ),
    (.init(url: place, body: "to={{to}}&text= {{text}}", escape: .form), "body: is not a form: write NAME={{to}}&"),
    (
      .init(url: place, body: #"{"to": "{{number}}", "text": "{{text}}"}"#, escape: .json),
      "body: has {{number}}, which is unknown here: use {{basic}}, {{from}}, {{text}}, {{to}}, {{to_digits}}, {{token}}"
    ),
    (.init(url: place + "?to={{to", body: body, escape: .json), "url: has {{ without }}"),
    (
      .init(url: place + "?key={{token}}", body: body, escape: .json, hasToken: true),
      "url: cannot have {{token}}: servers and proxies log URLs; use a header field"
    ),
    (.init(url: "https://{{to}}/{{text}}"), "url: needs its host and a / before the first placeholder"),
    (.init(url: "https://sms.example.com{{to}}/{{text}}"), "url: needs its host and a / before"),
    (
      .init(url: place, body: #"{"to": "{{to}}", "text": "{{text}}", "f": "{{from}}"}"#, escape: .json),
      "body: has {{from}}, but sms.from is not set"
    ),
    (.init(url: place, headers: ["X-Key: {{token}}"], body: body, escape: .json), "token: missing: {{token}} and"),
    (.init(url: place, body: body, escape: .json, hasToken: true), "token: has no effect: no header field and no body"),
    (.init(url: place, headers: ["X-To: {{to}}"], body: body, escape: .json), "headers: has {{to}}, which is unknown"),
    (.init(url: place, headers: ["Host: a"], body: body, escape: .json), "headers: cannot have Host: it follows"),
    (.init(url: place, headers: ["A: 1", "a: 2"], body: body, escape: .json), "headers: has a twice"),
    (.init(url: place, headers: ["A b: 1"], body: body, escape: .json), "headers: must have a name of letters"),
  ]

  @Test("a template that cannot work is refused with the part and what to write", arguments: cases)
  func faults(_ source: HTTPTextTemplate.Source, _ text: String) {
    do throws(HTTPTextTemplate.Fault) {
      _ = try HTTPTextTemplate(source)
      Issue.record("accepted: \(source)")
    } catch {
      #expect("\(error.part.rawValue): \(error.reason)".hasPrefix(text), "\(error)")
    }
  }
}
