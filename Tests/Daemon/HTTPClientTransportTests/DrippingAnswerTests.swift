import Foundation
import HTTPClientTransport
import Wire
import OIDCClient
import TestSupport
import Testing

/// A provider whose documents drip: the head, then a byte of the body every few milliseconds.
@Suite("Answers that drip", .timeLimit(.minutes(1)))
struct DrippingAnswerTests {
  private static let lost = TransportError.lost("no complete answer within the time allowed")

  private static let documents = [
    "/.well-known/openid-configuration": #"{"issuer":"BASE","jwks_uri":"BASE/jwks"}"#,
    "/jwks": #"{"keys":[]}"#,
  ]

  private func transport(_ time: Duration = .milliseconds(300)) -> HTTPClientTransport {
    HTTPClientTransport(.init(exchangeTime: time))
  }

  @Test func `an answer that is not complete in time is lost, and the next one is not`() async throws {
    let server = try DrippingServer(Self.documents)
    defer { server.stop() }
    let url = try #require(URL(string: server.base + "/jwks"))
    let impatient = transport()
    for method in [HTTPRequest.Method.get, .post] {
      await #expect(throws: Self.lost) { try await impatient.send(HTTPRequest(method: method, url: url)) }
    }
    server.mend()
    // A busy machine may need more than the time above for a complete answer.
    #expect(try await transport(.seconds(60)).send(HTTPRequest(url: url)).body == Array(#"{"keys":[]}"#.utf8))
  }

  @Test func `a shared fetch ends for all that wait for it, and the next request begins another one`() async throws {
    let server = try DrippingServer(Self.documents)
    defer { server.stop() }
    let directory = ProviderDirectory(issuer: server.base, transport: transport(.seconds(4)))
    let results = await withTaskGroup(of: Result<ProviderMetadata, OIDCError>.self) { group in
      for _ in 0..<10 {
        group.addTask {
          do throws(OIDCError) { return .success(try await directory.metadata()) } catch { return .failure(error) }
        }
      }
      return await group.reduce(into: []) { $0.append($1) }
    }
    #expect(results == Array(repeating: .failure(.transport(Self.lost)), count: 10))
    #expect(server.paths == ["/.well-known/openid-configuration"])
    server.mend()
    #expect(try await directory.metadata().issuer == server.base)
  }

  @Test func `a waiter that is cancelled ends no shared fetch`() async throws {
    let server = try DrippingServer(Self.documents)
    defer { server.stop() }
    server.mend()
    let door = Watched(false)
    let directory = ProviderDirectory(
      issuer: server.base, transport: HeldTransport(transport: transport(.seconds(30)), door: door))
    let first = Task { try await directory.metadata() }
    let second = Task { try await directory.metadata() }
    first.cancel()
    door.update { $0 = true }
    #expect(try await second.value.issuer == server.base)
    #expect(server.paths.count == 1)
  }

  /// Sends when a door is open.
  private struct HeldTransport: HTTPTransport {
    let transport: HTTPClientTransport
    let door: Watched<Bool>

    func send(_ request: HTTPRequest) async throws(TransportError) -> HTTPResponse {
      _ = try? await door.wait(for: "the door") { $0 ? true : nil }
      return try await transport.send(request)
    }
  }

  @Test func `a server that takes the connection and says nothing is lost, one that does not listen is unreachable`()
    async throws
  {
    let server = try DrippingServer(opening: [])
    defer { server.stop() }
    let url = try #require(URL(string: server.base + "/jwks"))
    let error = await #expect(throws: TransportError.self) { try await transport().send(HTTPRequest(url: url)) }
    // The drops between the head and the status line are no HTTP.
    if case .unreachable = error { Issue.record("\(String(describing: error))") }
    let closed = try #require(URL(string: "http://127.0.0.1:\(Places.freePort())"))
    let refused = await #expect(throws: TransportError.self) {
      try await transport(.seconds(60)).send(HTTPRequest(url: closed))
    }
    guard case .unreachable = refused else {
      Issue.record("\(String(describing: refused))")
      return
    }
  }
}
