import AttestClient
import ByteCoding
import Foundation
import MFAClient
import MFAWire
import SimulatedDevice
import Testing

/// A gate that accepts everything, in front of a server that gives one answer.
private actor OpenGate: HTTPTransport {
  private let answer: HTTPResponse?
  private(set) var received: [HTTPRequest] = []

  /// - Parameter answer: `nil` for a server that never answers.
  init(_ answer: HTTPResponse?) { self.answer = answer }

  func send(_ request: HTTPRequest) async throws(TransportError) -> HTTPResponse {
    switch request.url.path {
    case let path where path.hasSuffix("/attest/challenge"):
      let nonce = Hex.encode([UInt8](repeating: 1, count: 32))
      return HTTPResponse(status: 200, body: Array(#"{"nonce":"\#(nonce)","expires":"1700000060000"}"#.utf8))
    case let path where path.hasSuffix("/attest/register"): return HTTPResponse(status: 200)
    default:
      received.append(request)
      if let answer { return answer }
      // As a transport that does not notice a cancellation.
      await withUnsafeContinuation { (_: UnsafeContinuation<Void, Never>) in }
      throw .lost("never")
    }
  }
}

@Suite("Calls of the MFA backend")
struct NetworkServiceTests {
  private func service(
    answering answer: HTTPResponse?, at gateURL: String = "https://gate.example:6200", base: String? = nil,
    timeout: Duration = .seconds(MFAConfiguration.timeout)
  ) throws -> (service: NetworkService, gate: OpenGate) {
    let gate = OpenGate(answer)
    let authority = try TestAuthority(appID: "SALLYPORT1.com.example.app", at: .now())
    let keys = SimulatedKeyService(
      authority: authority, app: SimulatedApp(appID: authority.appID), keys: MemoryKeyStore())
    let session = try AttestSession(
      gate: try #require(URL(string: gateURL)), keys: keys, store: MemoryKeyIDStore(), http: gate)
    let base = try base.map { try #require(URL(string: $0)) }
    return (NetworkService(session: session, base: base, timeout: timeout), gate)
  }

  private func json(_ text: String, status: Int = 200) -> HTTPResponse {
    HTTPResponse(status: status, headers: [HTTPField("X-Request-Id", "r-1")], body: Array(text.utf8))
  }

  @Test("A POST has its fields in the body, and the token in Authorization")
  func post() async throws {
    let (service, gate) = try service(answering: json(#"{"success":true,"message":"Device unenrolled"}"#))
    let answer = try await service.call(
      MFAOperations.unenroll, DeviceRequest(username: "ada", deviceId: "d"), token: "t.t.t")
    #expect(answer.message == "Device unenrolled")
    let request = try #require(await gate.received.first)
    #expect(request.method == .post && request.url.absoluteString == "https://gate.example:6200/api/v1/mfa/unenroll")
    let body = try JSONDecoder().decode(DeviceRequest.self, from: Data(request.body))
    #expect(body.username == "ada" && body.deviceId == "d")
    #expect(request.headers.contains(HTTPField("Authorization", "Bearer t.t.t")))
    #expect(request.headers.contains(HTTPField("Content-Type", "application/json")))
  }

  @Test(
    "Fields in a path are escaped, so that no value changes the path",
    arguments: [("ada", "ada"), ("a/../b", "a%2F..%2Fb"), ("ä b?c#d%", "%C3%A4%20b%3Fc%23d%25"), ("{id}", "%7Bid%7D")])
  func path(_ username: String, _ escaped: String) async throws {
    let (service, gate) = try service(answering: json(#"{"devices":[]}"#), base: "https://gate.example:6200/api/v1/")
    _ = try await service.call(MFAOperations.devices, DevicesRequest(username: username))
    let request = try #require(await gate.received.first)
    #expect(request.url.absoluteString == "https://gate.example:6200/api/v1/devices/\(escaped)")
    #expect(request.method == .get && request.body.isEmpty)
  }

  @Test("Other fields of a GET are in the query, and absent ones are not")
  func query() async throws {
    let (service, gate) = try service(answering: json(#"{"entries":[],"next":null}"#))
    _ = try await service.call(MFAOperations.accountHistory, HistoryRequest(username: "ada", before: 7))
    _ = try await service.call(MFAOperations.accountHistory, HistoryRequest(username: "ada"))
    let urls = await gate.received.map(\.url.absoluteString)
    let path = "https://gate.example:6200/api/v1/admin/users/ada/history"
    #expect(urls == [path + "?before=7", path])
  }

  @Test("A refusal of the backend has its code, its text, its wait and the id of the request")
  func refusal() async throws {
    let body =
      #"{"success":false,"error":"Wait","message":"Wait\u001b[2J","code":"rate_limited","#
      + #""requestId":"r-1","retryAfter":7}"#
    let (service, _) = try service(answering: json(body, status: 429))
    do throws(NetworkError) {
      _ = try await service.call(MFAOperations.status, EmptyRequest())
      Issue.record("no error")
    } catch {
      guard case .refused(let refusal) = error else { throw error }
      #expect(refusal.status == 429 && refusal.code == "rate_limited" && refusal.retryAfter == .seconds(7))
      #expect(refusal.requestID == "r-1" && !refusal.message.contains("\u{1B}") && "\(error)" == refusal.message)
    }
  }

  @Test(
    "An answer of another form is reported with the id of the request",
    arguments: [(200, ""), (200, "[]"), (200, #"{"success":true"#), (200, "<html>"), (404, "<html>"), (302, "")])
  func malformed(_ status: Int, _ text: String) async throws {
    let (service, _) = try service(answering: json(text, status: status))
    do throws(NetworkError) {
      _ = try await service.call(MFAOperations.unenroll, DeviceRequest(username: "ada", deviceId: "d"))
      Issue.record("no error")
    } catch {
      guard case .malformed("r-1", _) = error else { throw error }
      #expect("\(error)".hasSuffix("(request r-1)"))
    }
  }

  @Test("A base that is not the gate's gets no request and no assertion")
  func otherBase() async throws {
    let (service, gate) = try service(answering: json("{}"), base: "https://other.example/api/v1")
    await #expect(throws: NetworkError.gate(.unusableAddress("https://other.example/api/v1/auth/mfa/status"))) {
      _ = try await service.call(MFAOperations.status, EmptyRequest())
    }
    #expect(await gate.received.isEmpty)
  }

  @Test(
    "A-105 the defaults: the Secure Enclave, 30 seconds, and /api/v1 of the gate, whatever its URL looks like",
    arguments: [
      ("https://gate.example:6200", "https://gate.example:6200/api/v1/auth/mfa/status"),
      ("https://gate.example/", "https://gate.example/api/v1/auth/mfa/status"),
      ("wss://localhost:6200/socket?a=b", "https://localhost:6200/api/v1/auth/mfa/status"),
      ("https://gate.example/behind/", "https://gate.example/behind/api/v1/auth/mfa/status"),
    ])
  func configuration(_ gateURL: String, _ url: String) async throws {
    #expect(MFAConfiguration.useSecureEnclave && MFAConfiguration.timeout == 30)
    let (service, gate) = try service(answering: json("{}"), at: gateURL)
    _ = try? await service.call(MFAOperations.status, EmptyRequest())
    #expect(await gate.received.map(\.url.absoluteString) == [url])
  }

  @Test("A-105 a call that has no answer in time ends, and may have been carried out", .timeLimit(.minutes(1)))
  func timeout() async throws {
    let (service, gate) = try service(answering: nil, timeout: .milliseconds(200))
    do throws(NetworkError) {
      _ = try await service.call(MFAOperations.status, EmptyRequest())
      Issue.record("an answer")
    } catch {
      #expect(error == .gate(.transport(.lost("no answer within 0.2 seconds"))))
      #expect(error.mayHaveBeenCarriedOut)
    }
    #expect(await gate.received.count == 1)
  }

  @Test("A cancelled call ends at once", .timeLimit(.minutes(1)))
  func cancelled() async throws {
    let (service, gate) = try service(answering: nil)
    let call = Task { () -> NetworkError? in
      do throws(NetworkError) {
        _ = try await service.call(MFAOperations.status, EmptyRequest())
        return nil
      } catch {
        return error
      }
    }
    while await gate.received.isEmpty, !Task.isCancelled { await Task.yield() }
    call.cancel()
    #expect(await call.value == .gate(.cancelled))
  }

  @Test("A refusal of the gate has its status and its wait, and says whether it may have been carried out")
  func refusedByGate() async throws {
    let refusal = HTTPResponse(
      status: 429, headers: [HTTPField("X-Attest-Error", "rate_limited"), HTTPField("Retry-After", "7")],
      body: Array("slow down".utf8))
    let error = NetworkError.gate(.assertionFailed(GateRefusal(refusal)))
    #expect(error.status == 429 && error.retryAfter == .seconds(7))
    #expect(!error.mayHaveBeenCarriedOut && !error.needsSignIn && error.refusalCode == nil)
    let unanswered = HTTPResponse(status: 502, headers: [HTTPField("X-Attest-Error", "upstream_unavailable")])
    #expect(NetworkError.gate(.assertionFailed(GateRefusal(unanswered))).mayHaveBeenCarriedOut)
    #expect(!NetworkError.gate(.transport(.unreachable("x"))).mayHaveBeenCarriedOut)
    #expect(NetworkError.gate(.transport(.lost("x"))).mayHaveBeenCarriedOut)
    #expect(NetworkError.malformed(requestID: nil, "x").mayHaveBeenCarriedOut)
    let failed = ErrorBody(message: "", code: "internal_error", requestId: "r")
    #expect(NetworkError.refused(BackendRefusal(status: 500, failed)).mayHaveBeenCarriedOut)
  }
}
