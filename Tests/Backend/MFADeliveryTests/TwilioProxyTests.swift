import Wire
import Foundation
import MFADelivery
import MFADomain
import TestSupport
import Testing

@Suite("SMS through a proxy", .timeLimit(.minutes(1)))
struct TwilioProxyTests {
  private func provider(
    _ base: String, _ variables: [String: String], time: Duration = .seconds(30)
  ) -> TwilioProvider {
    TwilioProvider(
      base: base, account: "AC1", token: "secret", sender: "+15550001111", domain: "example.com", exchangeTime: time,
      proxies: ProxyVariables { variables[$0] })
  }

  private func message() throws -> OutgoingMessage {
    OutgoingMessage(destination: .phone(try PhoneNumber("+1234567890")), code: "042042", lifetime: .seconds(300))
  }

  @Test("a message and a probe go through the proxy of the variable")
  func delivery() async throws {
    let relay = try ForwardProxyServer(.serve(port: 1, document: "{}"))
    defer { relay.stop() }
    let provider = provider("http://sms.example.test", ["http_proxy": relay.url])
    try await provider.deliver(try message())
    try await provider.probe()
    let lines = relay.heads.map { $0.components(separatedBy: "\r\n") }
    #expect(
      lines.map { $0[0] } == [
        "POST http://sms.example.test/2010-04-01/Accounts/AC1/Messages.json HTTP/1.1",
        "GET http://sms.example.test/2010-04-01/Accounts/AC1.json HTTP/1.1",
      ])
    #expect(lines[0].contains("Content-Type: application/x-www-form-urlencoded"))
    #expect(lines.allSatisfy { $0.contains("Authorization: Basic QUMxOnNlY3JldA==") })
  }

  @Test("a proxy that opens no tunnel leaves no doubt: the message was not sent, and is sent again")
  func refusal() async throws {
    let relay = try ForwardProxyServer(.answer(Array("HTTP/1.1 503 x\r\n\r\n".utf8)))
    defer { relay.stop() }
    let provider = provider("https://sms.example.test", ["ALL_PROXY": "http://user:hunter2@127.0.0.1:\(relay.port)"])
    let message = try message()
    let failure = await #expect(throws: DeliveryFailure.self) { try await provider.deliver(message) }
    #expect(failure?.isTemporary == true && failure?.isDoubtful == false)
    #expect(failure?.reason.contains("status 503") == true && failure?.reason.contains("hunter2") == false)
  }

  @Test("an answer that does not come, and one from the provider, are judged as without a proxy")
  func answers() async throws {
    let message = try message()
    let silent = try ForwardProxyServer(.silence)
    defer { silent.stop() }
    let late = provider("http://sms.example.test", ["http_proxy": silent.url], time: .seconds(3))
    let doubt = await #expect(throws: DeliveryFailure.self) { try await late.deliver(message) }
    #expect(doubt?.isTemporary == true && doubt?.isDoubtful == true)
    for (status, isTemporary) in [(400, false), (408, true), (429, true), (502, true)] {
      let relay = try ForwardProxyServer(.answer(Array("HTTP/1.1 \(status) x\r\nContent-Length: 0\r\n\r\n".utf8)))
      defer { relay.stop() }
      let provider = provider("http://sms.example.test", ["http_proxy": relay.url])
      await #expect(throws: DeliveryFailure(reason: "status \(status)", isTemporary: isTemporary)) {
        try await provider.deliver(message)
      }
    }
  }

  @Test("a faulty variable is named, and one for another host changes nothing")
  func faultyVariable() async throws {
    let message = try message()
    let faulty = provider("https://sms.example.test", ["https_proxy": "socks5://u:hunter2@x"])
    let failure = await #expect(throws: DeliveryFailure.self) { try await faulty.deliver(message) }
    #expect(failure?.reason.hasPrefix("https_proxy: ") == true && failure?.reason.contains("hunter2") == false)
    let server = try DrippingServer()
    defer { server.stop() }
    try await provider(server.base, ["ALL_PROXY": "socks5://x"], time: .seconds(6)).deliver(message)
  }
}
