import Foundation
import Wire
import TestSupport
import Testing
import Transport
import TransportEngine
import AttestClient

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// Responds with the status in the path, and with the method, a header and the body of the request.
private struct StatusResponder: RequestResponder {
  func respond(to request: Request, from peer: Peer) async -> Disposition {
    let status = Int(request.path.dropFirst()) ?? 200
    let headers = HeaderFields([
      .init(name: "X-Attest-Error", value: "some_code"), .init(name: "Location", value: "/200"),
    ])
    let echo = "\(request.method) \(request.headers.first("X-Test") ?? "-") "
    return .respond(Response(status: status, headers: headers, body: Array(echo.utf8) + request.body))
  }

  func response(to fault: RequestError, of headers: HeaderFields?, id: String, from peer: Peer) -> Response {
    Response(status: 400)
  }
}

@Suite("URLSession transport", .timeLimit(.minutes(1)))
struct URLSessionTransportTests {
  private func withServer(_ body: (String) async throws -> Void) async throws {
    let engine = try Engine(
      listeningAt: .ipv4([127, 0, 0, 1], port: 0), loops: 1, tls: nil, responder: StatusResponder())
    defer { engine.stop() }
    try await body("http://\(engine.address)")
  }

  @Test(
    "A request carries method, headers and body; its response carries status, headers and body",
    arguments: [200, 401, 503])
  func answers(status: Int) async throws {
    try await withServer { base in
      let url = try #require(URL(string: "\(base)/\(status)"))
      let request = HTTPRequest(
        method: .post, url: url, headers: [HTTPField("X-Test", "here")], body: Array("body".utf8))
      let response = try await URLSessionTransport().send(request)
      #expect(response.status == status)
      #expect(response.value(of: "x-attest-error") == "some_code")
      #expect(String(decoding: response.body, as: UTF8.self) == "POST here body")
    }
  }

  @Test("A URL without a path is answered, which the system may write with one", arguments: ["", "/", "?a=b"])
  func withoutPath(rest: String) async throws {
    try await withServer { base in
      let url = try #require(URL(string: base + rest))
      #expect(try await URLSessionTransport().send(HTTPRequest(url: url)).status == 200)
    }
  }

  @Test("A redirect is not followed", arguments: [301, 302, 307, 308])
  func redirect(status: Int) async throws {
    try await withServer { base in
      let url = try #require(URL(string: "\(base)/\(status)"))
      #expect(try await URLSessionTransport().send(HTTPRequest(url: url)).status == status)
      #if !canImport(Darwin)
        await #expect(throws: TransportError.malformed("redirected elsewhere")) {
          try await URLSessionTransport(session: .shared).send(HTTPRequest(url: url))
        }
      #endif
    }
  }

  @Test("An answer that drips is lost when the time of the exchange is over, and the next one is not")
  func drips() async throws {
    let server = try DrippingServer(["/": "{}"])
    defer { server.stop() }
    let url = try #require(URL(string: server.base + "/"))
    let impatient = URLSessionTransport(exchangeTime: .milliseconds(300))
    await #expect(throws: TransportError.lost("no complete answer within the time allowed")) {
      try await impatient.send(HTTPRequest(url: url))
    }
    server.mend()
    // A busy machine may need more than the time above for a complete answer.
    #expect(try await URLSessionTransport().send(HTTPRequest(url: url)).body == Array("{}".utf8))
  }

  @Test("The engine's client ends an answer that drips, too")
  func engineDrips() async throws {
    let server = try DrippingServer(["/": "{}"])
    defer { server.stop() }
    let engine = try ClientEngine()
    let headers = HeaderFields([.init(name: "Host", value: "127.0.0.1")])
    let connection = try await engine.connect(host: "127.0.0.1", port: server.port, tls: nil)
    await #expect(throws: ClientError.timedOut) {
      try await connection.send("GET", "/", headers: headers, timeout: .milliseconds(300))
    }
    server.mend()
    let next = try await engine.connect(host: "127.0.0.1", port: server.port, tls: nil)
    #expect(try await next.send("GET", "/", headers: headers).body == Array("{}".utf8))
  }

  @Test("A refused connection is reported as unreachable")
  func unreachable() async throws {
    let url = try #require(URL(string: "http://127.0.0.1:\(Places.freePort())"))
    let error = await #expect(throws: TransportError.self) {
      try await URLSessionTransport().send(HTTPRequest(url: url))
    }
    guard case .unreachable(let reason) = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(error?.description(of: "the provider") == "the provider cannot be reached: \(reason)")
    #expect(error?.localizedDescription == "the server cannot be reached: \(reason)")
  }
}
