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
    let params: Parameters

    struct Parameters: Sendable, Decodable {
      /// That of `session.attach`.
      let token: String?
      /// That of a call.
      let username: String?
    }
  }

  let received = LockedValue<[Received]>([])
  let handshakes = LockedValue<[HTTPRequest]>([])
  fileprivate let sockets = LockedValue<[StandInSocket]>([])
  /// The number of sockets that the client closed.
  let closed = LockedValue(0)
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
    let socket = StandInSocket(server: self)
    sockets.withLock { $0.append(socket) }
    return socket
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

  /// Sends `text` to the client.
  func deliver(_ text: String) { messages.continuation.yield(text) }

  func receive() async throws(SocketError) -> String {
    for await message in messages.stream { return message }
    throw .closed(SocketClosure(code: 4403, reason: "session revoked"))
  }

  func close() async {
    server.closed.withLock { $0 += 1 }
    messages.continuation.finish()
  }
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

  private func unlock(
    _ service: SocketService, _ username: String = "ada", token: String?
  ) async throws(NetworkError) {
    _ = try await service.call(MFAOperations.unlockAccount, AccountRequest(username: username), token: token)
  }

  /// Waits until `condition` is true, and lets other tasks run.
  private func wait(until condition: () -> Bool) async {
    while !condition(), !Task.isCancelled { await Task.yield() }
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

  @Test("A-108 after an attachment whose answer did not come, no call uses its socket", arguments: [false, true])
  func unknownAttachment(isFirst: Bool) async throws {
    let server = StandInServer { request in
      request.params.token == "second" ? [] : [#"{"jsonrpc":"2.0","id":\#(request.id),\#(Self.unlocked)}"#]
    }
    let service = try service(server)
    // On the socket without a session, or on the one that has another session.
    try await unlock(service, token: isFirst ? nil : "first")
    let task = Task { try await unlock(service, token: "second") }
    await wait { server.received.withLock { $0.contains { $0.params.token == "second" } } }
    task.cancel()
    await #expect(throws: NetworkError.gate(.cancelled)) { try await task.value }
    try await unlock(service, token: isFirst ? nil : "first")
    #expect(server.handshakes.withLock(\.count) == 2)
    #expect(server.received.withLock { $0.count { $0.params.token == "first" } } == (isFirst ? 0 : 2))
    await wait { server.closed.withLock(\.self) == 1 }
    #expect(server.closed.withLock(\.self) == 1)
  }

  @Test("A-108 a socket that is given up is closed after the answers that are outstanding")
  func outstanding() async throws {
    let server = StandInServer { _ in [] }
    let service = try service(server)
    let slow = Task { try await unlock(service, token: nil) }
    await wait { !server.received.withLock(\.isEmpty) }
    let other = Task { try await unlock(service, token: "second") }
    await wait { server.received.withLock { $0.contains { $0.params.token == "second" } } }
    other.cancel()
    await #expect(throws: NetworkError.gate(.cancelled)) { try await other.value }
    #expect(server.closed.withLock(\.self) == 0)
    let id = try #require(server.received.withLock(\.first?.id))
    server.sockets.withLock { $0[0] }.deliver(#"{"jsonrpc":"2.0","id":\#(id),\#(Self.unlocked)}"#)
    try await slow.value
    await wait { server.closed.withLock(\.self) == 1 }
    #expect(server.closed.withLock(\.self) == 1)
  }

  @Test("A-108 a refused attachment leaves the session that was attached")
  func refusedAttachment() async throws {
    let server = StandInServer { request in
      guard request.params.token == "second" else {
        return [#"{"jsonrpc":"2.0","id":\#(request.id),\#(Self.unlocked)}"#]
      }
      return [
        #"{"jsonrpc":"2.0","id":\#(request.id),"error":{"code":-32000,"message":"No","data":{"success":false,"#
          + #""error":"No","message":"No","code":"session_required","requestId":"r1"}}}"#
      ]
    }
    let service = try service(server)
    try await unlock(service, token: "first")
    await #expect(throws: NetworkError.self) { try await unlock(service, token: "second") }
    try await unlock(service, token: "first")
    #expect(server.handshakes.withLock(\.count) == 1 && server.closed.withLock(\.self) == 0)
    #expect(server.received.withLock { $0.map(\.method) }.filter { $0 == "session.attach" }.count == 2)
  }

  @Test("A-108 each call reaches the server in its own session, however many tokens call at once")
  func sessions() async throws {
    let server = StandInServer { request in [#"{"jsonrpc":"2.0","id":\#(request.id),\#(Self.unlocked)}"#] }
    let service = try service(server)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<200 {
        let name = "user\(number % 7)"
        group.addTask { try await self.unlock(service, name, token: name) }
      }
      try await group.waitForAll()
    }
    var attached: String?
    for request in server.received.withLock(\.self) {
      if let token = request.params.token { attached = token }
      if let name = request.params.username { #expect(name == attached) }
    }
    #expect(server.handshakes.withLock(\.count) == 1)
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
