import AttestClient
import Foundation
import Wire
import Testing

@Suite("Requests to the server behind the gate")
struct RequestTests {
  private func request(
    _ url: String = "https://gate.example:6200/api/v1/x", _ method: HTTPRequest.Method = .post
  ) throws -> HTTPRequest {
    HTTPRequest(method: method, url: try #require(URL(string: url)), headers: [HTTPField("X-Own", "1")], body: [1, 2])
  }

  private func refusal(_ code: GateRefusalCode) -> HTTPResponse {
    HTTPResponse(status: 401, headers: [HTTPField("x-attest-error", code.rawValue)], body: Array("no".utf8))
  }

  @Test(
    "Each request has an assertion of its own and keeps its method, fields and body",
    arguments: [HTTPRequest.Method.get, .post, .delete])
  func headers(_ method: HTTPRequest.Method) async throws {
    let fixture = try Fixture()
    let answer = HTTPResponse(status: 200, headers: [HTTPField("X", "y")], body: [7])
    fixture.gate.script(forwarded: [answer])
    #expect(try await fixture.session.data(for: request(method: method)) == answer)
    #expect(try await fixture.session.data(for: request(method: method)).status == 204)
    let sent = fixture.gate.forwarded
    #expect(sent.map(\.method) == [method, method] && sent.map(\.body) == [[1, 2], [1, 2]])
    let names = ["X-Own", "X-App-Assert-KeyId", "X-App-Assert-Data", "X-App-Assert-Nonce"]
    #expect(sent.map { $0.headers.map(\.name) } == [names, names])
    #expect(sent[0].headers[3] != sent[1].headers[3])
  }

  @Test("Refusals of the server behind the gate are answers, not errors", arguments: [400, 401, 403, 429, 500])
  func refusedByServer(_ status: Int) async throws {
    let fixture = try Fixture()
    fixture.gate.script(forwarded: [HTTPResponse(status: status, body: Array("{}".utf8))])
    #expect(try await fixture.session.data(for: request()).status == status)
    #expect(fixture.gate.forwarded.count == 1)
  }

  @Test("A request whose nonce the gate refuses is sent once more, with another assertion")
  func retried() async throws {
    let fixture = try Fixture()
    fixture.gate.script(forwarded: [refusal(.nonceUsed), HTTPResponse(status: 200)])
    #expect(try await fixture.session.data(for: request()).status == 200)
    #expect(Set(fixture.gate.forwarded.map(\.headers)).count == 2)
    fixture.gate.script(forwarded: [refusal(.nonceUsed), refusal(.nonceUsed)])
    await #expect(throws: AttestError.self) { try await fixture.session.data(for: request()) }
    #expect(fixture.gate.forwarded.count == 4)
  }

  @Test(
    "An assertion goes to no other server",
    arguments: [
      "https://other.example:6200/", "https://gate.example/", "http://gate.example:6200/", "wss://gate.example:6200/",
      "https://gate.example:6201/", "https://user@gate.example:6200/", "https://gate.example:6200@other.example/",
    ])
  func otherServer(_ url: String) async throws {
    let fixture = try Fixture()
    await #expect(throws: AttestError.unusableAddress(url)) { try await fixture.session.data(for: request(url)) }
    #expect(fixture.gate.requests.isEmpty)
  }

  private func request(method: HTTPRequest.Method) throws -> HTTPRequest {
    try request("https://gate.example:6200/api/v1/x", method)
  }
}
