import AttestClient
import ByteCoding
import Foundation
import Locking
import MFAClient
import MFAWire
import Testing

/// A server's end of sockets, in memory: it records the requests and answers as a test says.
private final class StandInServer: WebSocketTransport, HTTPTransport {
  struct Received: Sendable, Decodable {
    let method: String
    let id: Int
  }

  let received = LockedValue<[Received]>([])
  let handshakes = LockedValue<[HTTPRequest]>([])
  /// Returns the messages that answer one request; `nil` closes the socket.
  private let answer: @Sendable (Received) -> [String]?

  init(_ answer: @escaping @Sendable (Received) -> [String]?) { self.answer = answer }

  func send(_ request: HTTPRequest) async throws(TransportError) -> HTTPResponse {
    let isChallenge = request.url.path.hasSuffix("challenge")
    return HTTPResponse(
      status: 200, body: isChallenge ? Array(#"{"nonce":"\#(String(repeating: "ab", count: 32))"}"#.utf8) : [])
  }

  func openWebSocket(_ request: HTTPRequest) async throws(UpgradeError) -> any MessageSocket {
    handshakes.withLock { $0.append(request) }
    return StandInSocket(server: self)
  }

  fileprivate func answers(to text: String) -> [String]? {
    guard let request = try? JSONDecoder().decode(Received.self, from: Data(text.utf8)) else { return nil }
    received.withLock { $0.append(request) }
    return answer(request)
  }
}

private final class StandInSocket: MessageSocket {
  let server: StandInServer
  private let messages = AsyncStream.makeStream(of: String.self)

  init(server: StandInServer) { self.server = server }

  func send(_ text: String) async throws(SocketError) {
    guard let answers = server.answers(to: text) else { return messages.continuation.finish() }
    for answer in answers { messages.continuation.yield(answer) }
  }

  func receive() async throws(SocketError) -> String {
    for await message in messages.stream { return message }
    throw .closed(SocketClosure(code: 4403, reason: "session revoked"))
  }

  func close() async { messages.continuation.finish() }
}

/// A device whose keys sign nothing: the stand-in server verifies nothing.
private struct UnverifiedKeys: AppAttestKeyService {
  var isSupported: Bool { true }
  func generateKey() async throws(KeyServiceError) -> String { Base64.encode([UInt8](repeating: 7, count: 32)) }
  func attestKey(_ keyID: String, clientDataHash: [UInt8]) async throws(KeyServiceError) -> [UInt8] { [1] }
  func generateAssertion(_ keyID: String, clientDataHash: [UInt8]) async throws(KeyServiceError) -> [UInt8] { [2] }
}

@Suite("Operations by a socket", .timeLimit(.minutes(1)))
struct SocketServiceTests {
  private static let unlocked = #""result":{"success":true,"message":"done"}"#

  private func service(_ server: StandInServer) throws -> SocketService {
    let session = try AttestSession(
      gate: try #require(URL(string: "https://gate.test")), keys: UnverifiedKeys(), store: MemoryKeyIDStore(),
      http: server)
    return SocketService(session: session, transport: server)
  }

  private func unlock(_ service: SocketService, token: String?) async throws(NetworkError) {
    _ = try await service.call(MFAOperations.unlockAccount, AccountRequest(username: "ada"), token: token)
  }

  @Test("A-108 one socket carries the calls, each token is attached once, and notifications answer none")
  func calls() async throws {
    let server = StandInServer { request in
      [
        #"{"jsonrpc":"2.0","method":"notice","params":{}}"#,
        #"{"jsonrpc":"2.0","id":\#(request.id),\#(Self.unlocked)}"#,
      ]
    }
    let service = try service(server)
    try await unlock(service, token: nil)
    try await unlock(service, token: "first")
    try await unlock(service, token: "first")
    try await unlock(service, token: "second")
    #expect(
      server.received.withLock { $0.map(\.method) } == [
        "admin.unlock", "session.attach", "admin.unlock", "admin.unlock", "session.attach", "admin.unlock",
      ])
    let handshakes = server.handshakes.withLock(\.self)
    #expect(handshakes.count == 1)
    #expect(handshakes.first?.headers.first { $0.name == "Sec-WebSocket-Protocol" }?.value == "mfa.v1")
    #expect(handshakes.first?.headers.contains { $0.name == AssertionHeaders.dataName } == true)
  }

  @Test("A call without a token does not use the session of another call: it has a socket of its own")
  func withoutSession() async throws {
    let server = StandInServer { request in [#"{"jsonrpc":"2.0","id":\#(request.id),\#(Self.unlocked)}"#] }
    let service = try service(server)
    try await unlock(service, token: "first")
    try await unlock(service, token: nil)
    try await unlock(service, token: "first")
    try await unlock(service, token: nil)
    #expect(server.handshakes.withLock(\.count) == 2)
    #expect(server.received.withLock { $0.count { $0.method == "session.attach" } } == 1)
    await service.close()
    try await unlock(service, token: nil)
    #expect(server.handshakes.withLock(\.count) == 3)
  }

  @Test("A-108 an answer reaches the call that it belongs to, in any order")
  func order() async throws {
    let waiting = LockedValue<[Int]>([])
    let server = StandInServer { request in
      let ids = waiting.withLock { ids in
        ids.append(request.id)
        return ids
      }
      guard ids.count == 3 else { return [] }
      return ids.reversed().map { #"{"jsonrpc":"2.0","id":\#($0),"result":{"success":true,"message":"\#($0)"}}"# }
    }
    let service = try service(server)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<3 { group.addTask { try await self.unlock(service, token: nil) } }
      try await group.waitForAll()
    }
    #expect(Set(server.received.withLock { $0.map(\.id) }).count == 3)
  }

  @Test("A-108 a refusal has the code of REST and no status")
  func refusal() async throws {
    let server = StandInServer { request in
      [
        #"{"jsonrpc":"2.0","id":\#(request.id),"error":{"code":-32000,"message":"No","data":{"success":false,"#
          + #""error":"No","message":"No","code":"rate_limited","requestId":"r1","retryAfter":7}}}"#
      ]
    }
    let service = try service(server)
    await #expect(
      throws: NetworkError.refused(
        BackendRefusal(ErrorBody(message: "No", code: "rate_limited", requestId: "r1", retryAfter: 7)))
    ) { try await unlock(service, token: nil) }
  }

  @Test("A-108 a lost socket fails its calls, and the next call opens another one")
  func reopening() async throws {
    let isDown = LockedValue(true)
    let server = StandInServer { request in
      isDown.withLock(\.self) ? nil : [#"{"jsonrpc":"2.0","id":\#(request.id),\#(Self.unlocked)}"#]
    }
    let service = try service(server)
    await #expect(
      throws: NetworkError.gate(.transport(.lost("the socket was closed with 4403: session revoked")))
    ) { try await unlock(service, token: nil) }
    isDown.withLock { $0 = false }
    try await unlock(service, token: nil)
    #expect(server.handshakes.withLock(\.count) == 2)
  }

  @Test(
    "A-108 a malformed message fails the call and ends the socket",
    arguments: ["", "half {", "[]", #"{"id":"text"}"#, #"{"id":1,"error":{}}"#])
  func malformed(_ message: String) async throws {
    let server = StandInServer { _ in [message] }
    let service = try service(server)
    await #expect(throws: NetworkError.malformed(requestID: nil, "a message is not JSON-RPC 2.0")) {
      try await unlock(service, token: nil)
    }
  }

  @Test("A-108 an answer of another type is a typed error")
  func anotherType() async throws {
    let server = StandInServer { request in [#"{"jsonrpc":"2.0","id":\#(request.id),"result":[]}"#] }
    let service = try service(server)
    await #expect(throws: NetworkError.malformed(requestID: nil, "the answer is not a RevokeResponse")) {
      try await unlock(service, token: nil)
    }
  }

  @Test("A-108 a cancelled call stops waiting")
  func cancelled() async throws {
    let server = StandInServer { _ in [] }
    let service = try service(server)
    let task = Task { try await unlock(service, token: nil) }
    while server.received.withLock(\.isEmpty), !Task.isCancelled { await Task.yield() }
    task.cancel()
    await #expect(throws: NetworkError.gate(.cancelled)) { try await task.value }
  }
}
