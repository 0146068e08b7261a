import AppAttest
import AttestGate
import ByteCoding
import Foundation
import GateFixtures
import GateService
import Wire
import SimulatedDevice
import Testing
import Transport

@Suite("Refusals")
struct RefusalTests {
  @Test("T-44 Each refusal has its status, its code and its plain text", arguments: RefusalCase.all)
  func bareText(_ refusal: RefusalCase) async throws {
    let (service, request) = try await refusal.attempt()
    let response = try await service.answer(to: request.adding([("Accept", "*/*")]))
    #expect(response.status == refusal.status)
    // The token endpoint answers as OAuth has it, whatever the client accepts.
    let isOAuth = request.path == "/attest/token"
    let body = try isOAuth ? description(in: response) : String(decoding: response.body, as: UTF8.self)
    #expect(body == refusal.text)
    // RFC 9110 section 15.5.2.
    #expect(
      response.headers.values(of: "WWW-Authenticate")
        == (refusal.status == 401 ? [#"AppAttest realm="sallyport", challenge="/attest/challenge""#] : []))
    let type = isOAuth ? "application/json" : "text/plain; charset=utf-8"
    #expect(response.headers.values(of: "Content-Type") == [type])
    #expect(response.headers.values(of: "X-Attest-Error") == [refusal.code])
    #expect(response.headers.values(of: "X-Request-Id") == [Request.id])
  }

  @Test("T-43 A client that accepts application/json gets the same refusal as JSON", arguments: RefusalCase.all)
  func json(_ refusal: RefusalCase) async throws {
    let (service, request) = try await refusal.attempt()
    let response = try await service.answer(to: request.adding([("Accept", "application/json")]))
    let object = try JSONDecoder().decode([String: String].self, from: Data(response.body))
    #expect(response.status == refusal.status)
    let isOAuth = request.path == "/attest/token"
    #expect(object[isOAuth ? "error_description" : "error"] == refusal.text && object.count == (isOAuth ? 4 : 3))
    #expect(object["code"] == refusal.code && object["request_id"] == Request.id)
    #expect(response.headers.values(of: "Content-Type") == ["application/json"])
    #expect(response.headers.values(of: "X-Attest-Error") == [refusal.code])
  }

  private func description(in response: Response) throws -> String? {
    try JSONDecoder().decode([String: String].self, from: Data(response.body))["error_description"]
  }

  @Test(
    "Each refusal logs one line with the violated rule and without secrets", arguments: RefusalCase.all)
  func logLine(_ refusal: RefusalCase) async throws {
    let (service, request) = try await refusal.attempt()
    _ = try await service.answer(to: request)
    let lines = try service.log.lines
    let line = try #require(lines.first)
    #expect(lines.count == 1)
    #expect(line["message"] == "request refused")
    #expect(line["request_id"] == Request.id && line["client"] == "192.0.2.7" && line["path"] == request.path)
    #expect(line["code"] == refusal.code && line["step"] == refusal.step)
    #expect(line["status"] == String(refusal.status))
    let text = try service.log.text
    for secret in try secrets(of: request) { #expect(!text.contains(secret)) }
  }

  /// The values that must not be in the log, in any encoding: nonce, assertion, attestation and key id.
  private func secrets(of request: Request) throws -> [String] {
    var values = AssertionClaim.Name.allCases.flatMap { request.headers.values(named: $0.rawValue) }
    if let body = try? JSONDecoder().decode([String: String].self, from: Data(request.body)) { values += body.values }
    let hex = values.compactMap { Base64.decode($0).map { Hex.encode($0) } }
    return (values + hex).filter { $0.utf8.count >= 16 }
  }

  @Test("A refusal that concerns a known key names its app and a hash of the key")
  func context() async throws {
    let bench = try GateBench()
    let device = try await bench.registeredDevice()
    let service = try ServiceBench(bench)
    let headers = try device.fields(over: bench.nonce(), count: 0)
    #expect(try await service.answer(to: .upgrade(headers)).status == 401)
    let line = try #require(try service.log.lines.first)
    #expect(line["app"] == GateBench.appID)
    #expect(line["key"] == KeyHash(of: device.keyID).short)
  }

  @Test("Each code of the gate's rules occurs in these cases or in another test")
  func everyCode() {
    let others: Set<GateRefusalCode> = [
      .certificateRefused, .rateLimited,
      // Only Android devices: a gate process refuses them in EndToEndTests.
      .appRefused, .deviceRefused, .attestationRevoked, .statusListUnavailable,
      // The engine reports these refusals.
      .malformedHead, .malformedBody, .malformedUpgrade, .requestTimeout, .bodyTooLarge, .headTooLarge,
      .webSocketVersion, .upstreamUnavailable,
    ]
    let reached = Set(RefusalCase.all.map(\.code)).union(others.map(\.rawValue))
    #expect(GateRefusalCode.allCases.filter { !reached.contains($0.rawValue) } == [])
  }

  @Test("A certificate with a subject that is not allowed is refused and its subject is logged")
  func certificateSubject() async throws {
    let bench = try GateBench(certificates: ClientCertificateRule(allowedSubjects: ["CN=Someone"]))
    let service = try ServiceBench(bench)
    let certificate = PeerCertificate(der: [1], fingerprint: [2], subject: "CN=Another")
    let peer = Peer(address: .ipv4([192, 0, 2, 7], port: 1), verifiedCertificate: certificate)
    let response = try await service.answer(to: .upgrade(), from: peer)
    #expect(response.status == 403)
    #expect(response.headers.first("X-Attest-Error") == "certificate_refused")
    #expect(String(decoding: response.body, as: UTF8.self) == "This client certificate's subject is not accepted")
    #expect(try service.log.lines.first?["detail"] == "CN=Another")
  }

  @Test(
    "Requests that cannot be parsed are answered",
    arguments: [
      (RequestError.malformedHead(rule: "a space in a name"), 400, "malformed_head"),
      (.headTooLarge(rule: "more than 100 fields"), 431, "head_too_large"),
      (.bodyTooLarge(limit: 65536), 413, "body_too_large"),
      (.malformedBody(rule: "a chunk"), 400, "malformed_body"),
      (.malformedUpgrade(rule: "no key"), 400, "malformed_upgrade"),
      (.unsupportedWebSocketVersion, 426, "websocket_version"),
      (.tooSlow, 408, "request_timeout"),
    ])
  func faults(_ fault: RequestError, status: Int, code: String) throws {
    let service = try ServiceBench(GateBench())
    let response = service.responder.response(to: fault, of: nil, id: Request.id, from: ServiceBench.peer)
    #expect(response.status == status)
    #expect(response.headers.values(of: "X-Attest-Error") == [code])
    #expect(response.headers.values(of: "X-Request-Id") == [Request.id])
    let line = try #require(try service.log.lines.first)
    #expect(line["code"] == code && line["request_id"] == Request.id && line["client"] == "192.0.2.7")
  }

  @Test("A request whose body is at fault gets JSON if it asks for it")
  func faultOfBody() throws {
    let service = try ServiceBench(GateBench())
    for (accept, type) in [("application/json", "application/json"), ("*/*", "text/plain")] {
      let headers = HeaderFields([.init(name: "Accept", value: accept)])
      let response = service.responder.response(
        to: .bodyTooLarge(limit: 65536), of: headers, id: Request.id, from: ServiceBench.peer)
      #expect(response.headers.first("Content-Type")?.hasPrefix(type) == true, "\(accept)")
    }
  }

  @Test("A request without a decision in time gets 503 with code and id, in the form that it asks for, and is logged")
  func undecided() throws {
    let service = try ServiceBench(GateBench())
    for request in [
      Request.upgrade([("Accept", "application/json")]),
      .plain("GET", "/attest/verify", [("Accept", "application/json")]),
    ] {
      let answer = service.responder.responseWithoutDecision(on: request, from: ServiceBench.peer)
      #expect(answer.status == 503 && answer.headers.only("X-Attest-Error") == .once("overloaded"))
      #expect(answer.headers.only("X-Request-Id") == .once(Request.id) && answer.headers.contains("Retry-After"))
      #expect(answer.headers.first("Content-Type") == "application/json")
      // A proxy that copies the identity overwrites the client's fields.
      let isQuestion = request.path == "/attest/verify"
      #expect(answer.headers.only("X-Attest-Key-Id") == (isQuestion ? .once("") : .absent))
    }
    #expect(try service.log.lines.map { $0["step"] } == ["decision_time", "decision_time"])
    #expect(try service.log.lines.map { $0["path"] } == ["/", "/attest/verify"])
  }

  @Test("A client with an old WebSocket version gets the supported version")
  func versions() throws {
    let service = try ServiceBench(GateBench())
    let response = service.responder.response(
      to: .unsupportedWebSocketVersion, of: nil, id: "1", from: ServiceBench.peer)
    #expect(response.headers.first("Sec-WebSocket-Version") == "13")
  }

  @Test("The answer to a wrong method names the right method", arguments: ["PUT", "HEAD", "get", "OPTIONS"])
  func methods(_ method: String) async throws {
    let service = try ServiceBench(GateBench())
    for (path, allowed) in [("/attest/challenge", "GET"), ("/attest/register", "POST")] {
      let response = try await service.answer(to: .plain(method, path))
      #expect(response.status == 405 && response.headers.first("Allow") == allowed)
    }
  }
}
