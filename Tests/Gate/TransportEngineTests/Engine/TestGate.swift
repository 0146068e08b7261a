import Glibc
import Locking
import Testing
import Transport

@testable import TransportEngine

/// An engine whose responder admits every upgrade to one upstream and records the summaries of closed sessions.
final class TestGate: Sendable {
  let engine: Engine
  let record = SessionRecord()
  private let responder: OpenResponder

  init(
    upstream: Upstream, limits: SessionLimits = SessionLimits(), engineLimits: EngineLimits = EngineLimits(),
    tls: ServerTLS? = nil, subprotocol: String? = nil, maxResponseHead: Int = 64 << 10,
    report: @escaping @Sendable (EngineEvent) -> Void = { _ in }
  ) throws {
    responder = OpenResponder(
      upstream: upstream, limits: limits, record: record, subprotocol: subprotocol, maxResponseHead: maxResponseHead)
    engine = try Engine(
      listeningAt: .ipv4([127, 0, 0, 1], port: 0), loops: 1, tls: tls, responder: responder, limits: engineLimits,
      report: report)
  }

  deinit { engine.stop() }

  /// Reloads the engine with other limits and nothing else changed.
  func limit(_ limits: EngineLimits) async throws {
    try await engine.replace(responder: responder, tls: nil, limits: limits)
  }

  func connect() throws -> ScriptedSocket { try ScriptedSocket(connectingTo: engine.address.port) }

  /// Returns the largest number of bytes that a session has buffered from its client and for its client.
  func held() async -> (inbox: Int, outbox: Int) {
    await withCheckedContinuation { continuation in
      engine.loops[0].execute { loop in
        let sessions = (0..<loop.slots.end).compactMap { loop.slots.token(in: $0) }.compactMap {
          loop.slots.session($0)
        }
        continuation.resume(
          returning: (
            sessions.map { $0.pointee.http?.inbox.count ?? 0 }.max() ?? 0,
            sessions.map { $0.pointee.ends[0].socket.outbox.count }.max() ?? 0
          ))
      }
    }
  }

  static let host = HeaderFields([HeaderFields.Field(name: "Host", value: "x")])

  static let key = "dGhlIHNhbXBsZSBub25jZQ=="
  static let accept = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="

  static func upgrade(_ path: String = "/", extra: String = "") -> String {
    "GET \(path) HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
      + "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: \(key)\r\n\(extra)\r\n"
  }

  static let switching =
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    + "Sec-WebSocket-Accept: \(accept)\r\n\r\n"

  /// Returns a client and an upstream with an open session between them.
  func open(through listener: RawListener) throws -> (client: ScriptedSocket, backend: ScriptedSocket) {
    let client = try connect()
    try client.send(Self.upgrade())
    let backend = try listener.accept()
    _ = try backend.readHead()
    try backend.send(Self.switching)
    let head = try client.readHead()
    guard head.hasPrefix("HTTP/1.1 101 ") else { throw ScriptedSocket.Failure(description: head) }
    return (client, backend)
  }
}

/// What the loop of an engine knows about one peer of a session.
struct PeerState: Sendable {
  /// The number of WebSocket bytes from this peer that were passed to the other one.
  let bytes: Int
  /// The number of bytes that wait in the engine for this peer.
  let outbox: Int
  /// Whether the engine reads what this peer sends.
  let isRead: Bool
  /// Whether the engine has detected that this peer sends no more: it closed its sending side or lost the connection.
  let isGone: Bool

  fileprivate init(_ end: SessionEnd) {
    bytes = Int(end.bytes)
    outbox = end.socket.outbox.count
    isRead = end.socket.interest & Readiness.input != 0
    isGone = !end.socket.isOpen || end.socket.isReset || end.socket.hasEnded || end.socket.failure != nil
  }
}

/// What the loop of an engine knows about a session that has an upstream.
struct SessionState: Sendable {
  let client: PeerState
  let upstream: PeerState
  /// Whether a WebSocket that terminates in the gate has ended.
  let isOver: Bool

  fileprivate init?(_ session: SessionRef) {
    guard [Phase.relay, .bridge, .forward].contains(session.pointee.phase) else { return nil }
    client = PeerState(session.pointee.ends[0])
    upstream = PeerState(session.pointee.ends[1])
    isOver = session.pointee.endpoint?.isOver ?? false
  }
}

extension Engine {
  /// Returns the state of the session of the first loop that has an upstream; `nil` if there is none.
  func sessionState() async -> SessionState? {
    await withCheckedContinuation { continuation in
      loops[0].execute { loop in
        let sessions = (0..<loop.slots.end).compactMap { loop.slots.token(in: $0) }.compactMap {
          loop.slots.session($0)
        }
        continuation.resume(returning: sessions.compactMap { SessionState($0) }.first)
      }
    }
  }

  /// Lets `duration` pass for the first loop, and returns when the deadlines within it have expired. Limits of minutes
  /// make the time that a busy machine needs meanwhile unimportant.
  func pass(_ duration: Duration) async {
    for time in [duration.milliseconds, 0] {
      await withCheckedContinuation { continuation in
        loops[0].execute { loop in
          loop.pass(time)
          continuation.resume()
        }
      }
    }
  }

  /// Waits until the session that has an upstream satisfies `condition` or is closed.
  func wait(for purpose: String, _ condition: @Sendable (SessionState) -> Bool) async throws {
    // Two minutes at least.
    for _ in 0..<24_000 {
      guard let state = await sessionState(), !condition(state) else { return }
      try await Task.sleep(for: .milliseconds(5))
    }
    throw ScriptedSocket.Failure(description: "waited too long: \(purpose)")
  }
}

/// Records the summaries of closed sessions, for tests that wait for them.
final class SessionRecord: Sendable {
  private struct State {
    var summaries: [SessionSummary] = []
    var controls: [SessionControl] = []
    var waiting: [CheckedContinuation<SessionSummary, Never>] = []
  }
  private let state = LockedValue(State())
  let pause = Pause()
  /// The answer of `refusal()` of all orders; `nil` if they are not withdrawn.
  let refusal = LockedValue<Response?>(nil)
  /// The upstreams that later orders try after the first.
  let others = LockedValue<[Upstream]>([])
  /// Why an upstream was left for the next.
  let passedOver = LockedValue<[UpstreamError]>([])
  /// The gate's own subprotocols of later orders.
  let ownSubprotocols = LockedValue<[String]>([])
  /// How many connections to upstreams were made.
  let reached = LockedValue(0)
  private let freed = LockedValue<(@Sendable () -> Void)?>(nil)

  deinit { freed.withLock { $0 }?() }

  /// Calls `action` when the record is freed.
  func whenFreed(_ action: @escaping @Sendable () -> Void) { freed.withLock { $0 = action } }

  func opened(_ control: SessionControl) { state.withLock { $0.controls.append(control) } }

  func closed(_ summary: SessionSummary) {
    let waiting = state.withLock { state in
      if state.waiting.isEmpty {
        state.summaries.append(summary)
        return nil as CheckedContinuation<SessionSummary, Never>?
      }
      return state.waiting.removeFirst()
    }
    waiting?.resume(returning: summary)
  }

  /// Returns the summary of the next session, in the order in which sessions are closed.
  func next() async -> SessionSummary {
    await withCheckedContinuation { continuation in
      let known = state.withLock { state -> SessionSummary? in
        if !state.summaries.isEmpty { return state.summaries.removeFirst() }
        state.waiting.append(continuation)
        return nil
      }
      if let known { continuation.resume(returning: known) }
    }
  }

  /// Whether all summaries have been read.
  var isEmpty: Bool { state.withLock { $0.summaries.isEmpty } }

  var controls: [SessionControl] { state.withLock { $0.controls } }
}

/// Stops the loop of a gate while a request for `path` is decided, so that it handles several events in one iteration.
final class Pause: Sendable {
  static let path = "/pause"
  /// Two pipes: the loop reports that it has stopped, and the test lets it continue.
  private let descriptors: [Int32]

  init() {
    var pipes: [Int32] = [-1, -1, -1, -1]
    pipes.withUnsafeMutableBufferPointer { buffer in
      guard let base = buffer.baseAddress else { return }
      pipe(base)
      pipe(base + 2)
    }
    descriptors = pipes
  }

  deinit { for fd in descriptors { close(fd) } }

  /// Called by the loop.
  func wait() {
    signal(descriptors[1])
    block(descriptors[2])
  }

  /// Returns when the loop has stopped.
  func begin() { block(descriptors[0]) }
  func end() { signal(descriptors[3]) }

  private func signal(_ fd: Int32) {
    var byte: UInt8 = 0
    _ = write(fd, &byte, 1)
  }

  private func block(_ fd: Int32) {
    var byte: UInt8 = 0
    _ = read(fd, &byte, 1)
  }
}

/// Sends every message back.
final class EchoConversation: WebSocketSession {
  static let path = "/echo"
  let subprotocol: String? = nil
  let maxMessage = 1 << 20
  private let channel = LockedValue<WebSocketChannel?>(nil)

  func opened(_ socket: WebSocketChannel) { channel.withLock { $0 = socket } }
  func received(_ message: WebSocketMessage) { channel.withLock { $0 }?.send(message) }
  func closed(code: UInt16?, reason: String) {}
}

private struct OpenResponder: RequestResponder {
  let upstream: Upstream
  let limits: SessionLimits
  let record: SessionRecord
  let subprotocol: String?
  let maxResponseHead: Int
  let ownFields = FieldNameSet(names: ["X-Own"])

  func respond(to request: Request, from peer: Peer) async -> Disposition {
    guard request.upgrade == nil else {
      if request.path == EchoConversation.path { return .converse(EchoConversation()) }
      return .relay(
        OpenOrder(
          upstream: upstream, limits: limits, record: record, subprotocol: subprotocol,
          maxResponseHead: maxResponseHead),
        upgradeHead: upgradeHead(for: request))
    }
    if request.path == Pause.path { record.pause.wait() }
    return .respond(Response(status: 200, body: Array("\(request.method) \(request.path) \(request.body.count)".utf8)))
  }

  private func upgradeHead(for request: Request) -> [UInt8] {
    let fields = request.headers.fields.map { "\($0.name): \($0.value)\r\n" }.joined()
    return Array("GET \(request.target) HTTP/1.1\r\n\(fields)\r\n".utf8)
  }

  func response(to fault: RequestError, of headers: HeaderFields?, id: String, from peer: Peer) -> Response {
    Response(status: 400, body: Array("\(fault)".utf8), closes: true)
  }
}

/// Opens every relay and records it.
final class OpenOrder: RelayPlan {
  var upstream: Upstream { servers.withLock { $0[0] } }
  /// The current upstream, and those that are tried after it.
  private let servers: LockedValue<[Upstream]>
  let limits: SessionLimits
  let record: SessionRecord
  let subprotocol: String?
  let maxResponseHead: Int

  init(
    upstream: Upstream, limits: SessionLimits, record: SessionRecord, subprotocol: String? = nil,
    maxResponseHead: Int = 64 << 10
  ) {
    (self.limits, self.record) = (limits, record)
    servers = LockedValue([upstream] + record.others.withLock(\.self))
    (self.subprotocol, self.maxResponseHead) = (subprotocol, maxResponseHead)
  }

  func answerFields(from upstream: HeaderFields) -> HeaderFields { upstream }

  func response(to fault: UpstreamError) -> Response {
    if case .refused(let response) = fault { return response }
    return Response(status: 502, body: Array("\(fault)".utf8), closes: true)
  }
  var ownSubprotocols: [String] { record.ownSubprotocols.withLock(\.self) }
  func refusal() -> Response? { record.refusal.withLock { $0 } }
  func reached() { record.reached.withLock { $0 += 1 } }
  var hasAlternative: Bool { servers.withLock { $0.count > 1 } }
  func nextUpstream(after fault: UpstreamError, mayTryAnother: Bool) -> Upstream? {
    record.passedOver.withLock { $0.append(fault) }
    guard mayTryAnother, hasAlternative else { return nil }
    return servers.withLock { servers in
      servers.removeFirst()
      return servers[0]
    }
  }
  func opened(_ control: SessionControl) { record.opened(control) }
  func closed(_ summary: SessionSummary) { record.closed(summary) }
}

/// The suites that block their threads. They run one test at a time, so that other suites have threads too.
@Suite("Engine", .serialized)
struct EngineTests {}
