import AttestGate
import ByteCoding
import GateFixtures
import Testing
import Transport

@testable import GateService

@Suite("Assertions in a subprotocol or in the query")
struct AssertedRequestTests {
  private let service: ServiceBench
  init() throws { service = try ServiceBench(GateBench()) }

  private func upgrade(_ subprotocols: [String], query: String = "", fields: [(String, String)] = []) -> Request {
    let offer = subprotocols.isEmpty ? [] : [("Sec-WebSocket-Protocol", subprotocols.joined(separator: ", "))]
    let request = Request.upgrade(offer + fields, path: "/page", query: query)
    return Request(
      id: Request.id, method: "GET", target: request.target, path: request.path, headers: request.headers,
      upgrade: UpgradeIntent(key: "dGhlIHNhbXBsZSBub25jZQ==", subprotocols: subprotocols))
  }

  /// The carrier of `members`, without a prefix.
  private func carried(_ members: [(String, String)]) -> String {
    let members = members.map { "\"\($0.0)\":\"\($0.1)\"" }.joined(separator: ",")
    return Base64URL.encode(Array("{\(members)}".utf8))
  }

  private func credentials() async throws -> [(String, String)] {
    let device = try await service.bench.registeredDevice()
    return try device.fields(over: service.bench.nonce(), count: 1)
  }

  @Test("A subprotocol admits, and the upstream sees only the others")
  func subprotocol() async throws {
    let token = try await "sallyport.v1." + carried(credentials())
    let (plan, head) = try await service.relay(for: upgrade(["chat", token, "mqtt"]))
    let text = String(decoding: head, as: UTF8.self)
    #expect(text.contains("\r\nSec-WebSocket-Protocol: chat, mqtt\r\n"))
    #expect(!text.contains("sallyport.v1"))
    #expect(text.contains("\r\nX-Attest-Method: app-attest\r\n"))
    #expect(plan.ownSubprotocols == [token])
    #expect(try !service.log.text.contains(token))
    // The nonce is spent.
    let again = try await service.answer(to: upgrade([token]))
    #expect(again.status == 401 && again.headers.first("X-Attest-Error") == "nonce_used")
  }

  @Test("The answer can have the plain name, so that it does not repeat the assertion")
  func plainName() async throws {
    let token = try await "sallyport.v1." + carried(credentials())
    let (plan, head) = try await service.relay(for: upgrade([token, "sallyport.v1"]))
    #expect(!String(decoding: head, as: UTF8.self).contains("Sec-WebSocket-Protocol"))
    #expect(plan.ownSubprotocols == ["sallyport.v1", token])
  }

  @Test(
    "A parameter of the query admits, and the upstream sees only the others",
    arguments: [
      ("?sallyport.v1=*", ""), ("?a=1&sallyport.v1=*&b=%20", "?a=1&b=%20"), ("?sallyport.v1=*&", "?"),
      ("?&sallyport.v1=*", "?"), ("?sallyport.v1=*&sallyport.v2=x", "?sallyport.v2=x"),
    ])
  func query(_ query: String, rest: String) async throws {
    let text = try await carried(credentials())
    let (plan, head) = try await service.relay(for: upgrade([], query: query.replacing("*", with: text)))
    #expect(String(decoding: head, as: UTF8.self).hasPrefix("GET /page\(rest) HTTP/1.1\r\n"))
    #expect(!String(decoding: head, as: UTF8.self).contains(text))
    #expect(plan.ownSubprotocols.isEmpty)
    #expect(try !service.log.text.contains(text))
  }

  @Test("Names may have any case, and a missing one is named")
  func names() async throws {
    let parts = try await credentials()
    let lower = carried(parts.map { ($0.0.lowercased(), $0.1) })
    _ = try await service.order(for: upgrade(["sallyport.v1." + lower]))
    let missing = carried(parts.filter { $0.0 != "X-App-Assert-Nonce" })
    let response = try await service.answer(to: upgrade(["sallyport.v1." + missing]))
    #expect(response.status == 400)
    #expect(String(decoding: response.body, as: UTF8.self) == "X-App-Assert-Nonce is missing")
  }

  @Test(
    "What cannot be read is refused with the rule",
    arguments: [
      ("", ""), ("e30=", "without padding"), ("e3 0", "without padding"),
      ("W10", "JSON object"), (String(repeating: "A", count: 4097), "longer than 4096 bytes"),
      (Base64URL.encode(Array(#"{"X-App-Assert-KeyId":1}"#.utf8)), "JSON object of texts"),
      (Base64URL.encode(Array(#"{"X-App-Assert-KeyId":"a","X-App-Assert-KeyId":"b"}"#.utf8)), "JSON object"),
      (Base64URL.encode(Array(#"{"x-app-assert-keyid":"a","X-App-Assert-KeyId":"b"}"#.utf8)), "more than once"),
      (Base64URL.encode(Array(#"{"Authorization":"x"}"#.utf8)), "none of the three header fields"),
    ])
  func unreadable(_ text: String, rule: String) async throws {
    for request in [upgrade(["sallyport.v1." + text]), upgrade([], query: "?sallyport.v1=" + text)] {
      let response = try await service.answer(to: request)
      #expect(response.status == 400 && response.headers.first("X-Attest-Error") == "malformed_header")
      let body = String(decoding: response.body, as: UTF8.self)
      #expect(body.contains(rule), "\(text): \(body)")
    }
  }

  @Test("An assertion that comes twice is refused: two readers could take different ones")
  func twice() async throws {
    let parts = try await credentials()
    let text = carried(parts)
    for request in [
      upgrade(["sallyport.v1.\(text)"], query: "?sallyport.v1=\(text)"),
      upgrade([], query: "?sallyport.v1=\(text)&sallyport.v1=\(text)"),
      upgrade(["sallyport.v1.\(text)", "sallyport.v1.e30"]),
      upgrade(["sallyport.v1.\(text)"], fields: parts),
      upgrade([], query: "?sallyport.v1=\(text)", fields: [parts[0]]),
    ] {
      let response = try await service.answer(to: request)
      #expect(response.status == 400 && response.headers.first("X-Attest-Error") == "malformed_header")
    }
    _ = try await service.order(for: upgrade(["sallyport.v1.\(text)"]))
  }

  @Test("A route that allows neither passes both on unchanged, and they admit nobody")
  func notAllowed() async throws {
    let parts = try await credentials()
    let text = carried(parts)
    for (subprotocols, query) in [(["sallyport.v1.\(text)"], ""), ([], "?sallyport.v1=\(text)")] {
      let request = upgrade(subprotocols, query: query)
      let elsewhere = Request(
        id: Request.id, method: "GET", target: "/any" + query, path: "/any", headers: request.headers,
        upgrade: request.upgrade)
      #expect(try await service.answer(to: elsewhere).status == 401)
      #expect(AssertedRequest(elsewhere).request.target == elsewhere.target)
      #expect(AssertedRequest(elsewhere).ownSubprotocols.isEmpty)
    }
  }

  @Test("An ordinary request has no carrier")
  func ordinary() async throws {
    let text = try await carried(credentials())
    let request = Request(
      id: Request.id, method: "GET", target: "/page?sallyport.v1=\(text)", path: "/page",
      headers: HeaderFields([("Host", "gate.example")]))
    let asserted = AssertedRequest(request, carriers: [.subprotocol, .query])
    #expect(asserted.assertion.isAbsent)
    #expect(asserted.request.target == request.target)
  }
}
