internal import ByteCoding
internal import Glibc
internal import Locking
internal import NIOCore
internal import NIOHTTP1

/// The open connections of the admin socket.
///
/// A client that says nothing, or that does not read its answer, makes room for a newer one: it locks no operator out.
final class AdminConnections: Sendable {
  private enum Phase { case arriving, working, answering }

  private struct Entry {
    let channel: any Channel
    var phase = Phase.arriving
  }

  private let most: Int
  /// The oldest first.
  private let entries = LockedValue<[Entry]>([])

  init(atMost most: Int) { self.most = most }

  var isEmpty: Bool { entries.withLock(\.isEmpty) }

  /// Counts `channel`. If there are too many, closes the oldest one without a request in work, and otherwise `channel`.
  func admit(_ channel: any Channel) {
    let surplus: (any Channel)? = entries.withLock { entries in
      if entries.count < most {
        entries.append(Entry(channel: channel))
        return nil
      }
      guard let oldest = entries.firstIndex(where: { $0.phase != .working }) else { return channel }
      let surplus = entries.remove(at: oldest).channel
      entries.append(Entry(channel: channel))
      return surplus
    }
    surplus?.close(promise: nil)
  }

  /// Notes that the request of `channel` has arrived, and is in work from now on.
  ///
  /// - Returns: `false` if the channel has one already, or was closed for a newer one: its request must not be done.
  func beginRequest(of channel: any Channel) -> Bool { move(channel, from: .arriving, to: .working) }

  /// Notes that only the client can delay the end of `channel` from now on.
  func beginAnswer(to channel: any Channel) { _ = move(channel, from: .working, to: .answering) }

  /// Whether the request of `channel` has not arrived completely, or the channel was closed for a newer one.
  func isArriving(_ channel: any Channel) -> Bool {
    entries.withLock { $0.first { $0.channel === channel }?.phase ?? .arriving == .arriving }
  }

  func remove(_ channel: any Channel) { entries.withLock { $0.removeAll { $0.channel === channel } } }

  private func move(_ channel: any Channel, from phase: Phase, to next: Phase) -> Bool {
    entries.withLock { entries in
      guard let index = entries.firstIndex(where: { $0.channel === channel }), entries[index].phase == phase else {
        return false
      }
      entries[index].phase = next
      return true
    }
  }
}

/// One connection to the admin socket, with one request.
final class AdminConnection: ChannelInboundHandler, Sendable {
  typealias InboundIn = HTTPServerRequestPart
  typealias OutboundOut = HTTPServerResponsePart

  private struct State {
    var head: HTTPRequestHead?
    /// Whether the head of the one request has arrived. Everything after the request is ignored.
    var hasHead = false
    var timers: [Scheduled<Void>] = []
  }

  private let router: AdminRouter
  private let connections: AdminConnections
  private let limits: AdminServer.Limits
  private let state = LockedValue(State())

  init(_ router: AdminRouter, _ connections: AdminConnections, _ limits: AdminServer.Limits) {
    (self.router, self.connections, self.limits) = (router, connections, limits)
  }

  func channelActive(context: ChannelHandlerContext) {
    let channel = context.channel
    let (loop, connections) = (channel.eventLoop, connections)
    let timers = [
      loop.scheduleTask(in: TimeAmount(limits.request)) {
        // A request that is in work has the longer limit.
        if connections.isArriving(channel) { channel.close(promise: nil) }
      },
      loop.scheduleTask(in: TimeAmount(limits.exchange)) { channel.close(promise: nil) },
    ]
    state.withLock { $0.timers = timers }
    connections.admit(channel)
  }

  func channelInactive(context: ChannelHandlerContext) {
    connections.remove(context.channel)
    for timer in state.withLock({ $0.timers }) { timer.cancel() }
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .head(let new):
      state.withLock { state in
        if !state.hasHead { (state.head, state.hasHead) = (new, true) }
      }
    // No request of an operator has a body.
    case .body: break
    case .end:
      let request = state.withLock { state in
        defer { state.head = nil }
        return state.head
      }
      let (channel, connections) = (context.channel, connections)
      guard let request, connections.beginRequest(of: channel) else { return }
      Task { [router] in
        let answer = await router.answer(
          request.method.rawValue, request.uri, accept: request.headers.first(name: "Accept"),
          from: await Self.peer(of: channel, request.headers))
        connections.beginAnswer(to: channel)
        try? await Self.write(answer, to: channel, withBody: request.method != .HEAD)
      }
    }
  }

  /// `struct ucred`: process, user and group.
  private typealias Credentials = (Int32, UInt32, UInt32)

  private static func peer(of channel: any Channel, _ headers: HTTPHeaders) async -> AdminPeer? {
    guard let options = channel as? any SocketOptionProvider else { return nil }
    do {
      let credentials: Credentials = try await options.unsafeGetSocketOption(
        level: .socket, name: NIOBSDSocket.Option(rawValue: SO_PEERCRED)
      ).get()
      let caller = headers.first(name: OperatorName.field).flatMap { UInt32($0) }
      let person = AdminPeer.person(in: headers.first(name: ConsolePersonField.name))
      return AdminPeer(user: credentials.1, caller: caller, person: person)
    } catch {
      return nil
    }
  }

  /// Closes the connection for a request that is malformed or too large. The answer to an earlier one is not harmed.
  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    if connections.isArriving(context.channel) { context.close(promise: nil) }
  }

  private static func write(_ answer: AdminAnswer, to channel: any Channel, withBody: Bool) async throws {
    var fields: HTTPHeaders = [
      "Content-Type": answer.type, "Content-Length": String(answer.body.count), "Cache-Control": "no-store",
      "Connection": "close",
    ]
    for (name, value) in answer.fields { fields.add(name: name, value: value) }
    let head = HTTPResponseHead(
      version: .http1_1, status: HTTPResponseStatus(statusCode: answer.status), headers: fields)
    channel.write(HTTPServerResponsePart.head(head), promise: nil)
    if withBody {
      channel.write(HTTPServerResponsePart.body(.byteBuffer(ByteBuffer(bytes: answer.body))), promise: nil)
    }
    try await channel.writeAndFlush(HTTPServerResponsePart.end(nil))
    try await channel.close()
  }
}
