internal import Transport

typealias SessionRef = UnsafeMutablePointer<Session>

/// One of the two ends of a session.
enum Side {
  case client
  case upstream

  var other: Side { self == .client ? .upstream : .client }
  var index: Int { self == .client ? 0 : 1 }
  var name: SessionSummary.Side { self == .client ? .client : .upstream }
}

/// One end: its socket, and where its half of the conversation stands.
struct SessionEnd {
  var link = Link()
  /// Follows the frames that this end sends.
  var frames = FrameTracker()
  /// The beginning of a frame that this end sent and that has to be seen in one piece.
  var held = Outbox()
  /// WebSocket bytes that this end sent and the other was given.
  var bytes: UInt64 = 0
  /// A frame of the gate for this end, waiting for the one in transit to end.
  var owed: GateDebt?
  /// The gate has sent this end a Close: nothing may follow it.
  var isToldToClose = false
  var lastPing: Milliseconds = 0
  /// Our Pings that this end has not answered.
  var pongsDue = 0
}

/// What the gate wants to say between two frames.
enum GateDebt {
  case ping
  case close(CloseCode, reason: String)
}

/// Where a session stands. Each phase names who must move next.
enum Phase {
  /// The proxy that hands the connection on: whose it is.
  case preface
  /// The client: TLS.
  case handshake
  /// The client: the head of a request, or nothing at all between two requests.
  case head
  /// The client: the rest of a request's body.
  case body
  /// The responder.
  case decision
  /// The kernel: an answer on its way, and then the next request.
  case answer
  /// Name resolution and connection.
  case connection
  /// The upstream: TLS.
  case upstreamHandshake
  /// The upstream: its 101, or its refusal.
  case upgrade
  /// Both: bodies of an ordinary request and its answer.
  case forward
  /// Both: frames.
  case relay
  /// Both: frames from the client, bytes from the upstream.
  case bridge
  /// The client: messages for a session that lives here.
  case conversation
  /// The client: to take notice of the end.
  case farewell
}

/// A connection that a client opened, from TLS to the end of the relay. Plain memory; its loop alone touches it.
struct Session {
  var token = SlotToken(slot: 0, generation: 0)
  var phase = Phase.handshake
  /// Client and upstream.
  let ends: UnsafeMutablePointer<SessionEnd>
  let timer: UnsafeMutablePointer<TimerNode>
  /// What is needed until frames flow. `nil` during the relay.
  var exchange: Exchange?
  var order: (any RelayOrder)?
  var endpoint: Endpoint?
  var bounds = RelayBounds()
  /// Set with `order.opened`, so that `order.closed` follows exactly once.
  var openedAt: Milliseconds?
  /// Why the session ends, once it does: the first reason counts.
  var end: SessionSummary.End?
  /// The gate ends this session: frames are no longer relayed once it has said so.
  var isClosedByGate = false
  /// When patience with the ends runs out.
  var closeDeadline: Milliseconds?
  var pingToken: UInt64 = 0
  /// Whose connection it is, once that is known.
  var block: AddressBlock?
  /// Among the connections of its address, where those are counted.
  var place: ConnectionPlace?

  init() {
    ends = .allocate(capacity: 2)
    ends.initialize(repeating: SessionEnd(), count: 2)
    timer = .allocate(capacity: 1)
    timer.initialize(to: TimerNode())
  }

  func deallocate() {
    for side in 0..<2 {
      ends[side].link.close()
      ends[side].held.removeAll()
    }
    ends.deinitialize(count: 2)
    ends.deallocate()
    timer.deallocate()
  }
}

/// `SessionLimits` in the loop's own units.
struct RelayBounds {
  var maxMessage: UInt64 = 0
  var idle: Milliseconds?
  var ping: Milliseconds?
  var ageDeadline: Milliseconds?

  init() {}

  init(_ limits: SessionLimits, now: Milliseconds) {
    maxMessage = UInt64(max(0, limits.maxMessage))
    idle = limits.idleTimeout?.milliseconds
    ping = limits.pingInterval?.milliseconds
    ageDeadline = limits.maxAge.map { now + $0.milliseconds }
  }
}

/// What a session knows while it speaks HTTP.
final class Exchange {
  var hello = ClientHelloGuard()
  /// Of the socket, until a proxy that is believed says another one.
  var address: SocketAddress
  let acceptedAt: Milliseconds
  var peer: Peer
  /// What a certificate of the client's was verified with.
  var clientAuthorities: Set<[UInt8]> = []
  /// Plaintext from the client that is not parsed yet.
  var inbox: [UInt8] = []
  var head: RequestHead?
  /// An empty line in front of the request has been passed over.
  var hasSkippedLine = false
  var body: BodyReader?
  var requestID = ""
  /// The handshake that an upstream is asked for on the client's behalf.
  var upgrade: UpgradeIntent?
  /// What asks for it.
  var upgradeHead: [UInt8] = []
  /// The body has not been read: it is to be handed on as it comes.
  var isBodyPending = false
  /// The body has been read, for a responder.
  var isBodyRead = false
  /// The ordinary request that is under way to an upstream.
  var forward: Forward?
  /// Where the upstream may be, and which of these is next.
  var addresses: ArraySlice<SocketAddress> = []
  /// The one that is being tried, or was last.
  var attempt: SocketAddress?
  var lastConnectError = ""
  /// When patience with the upstream's connection, TLS and 101 runs out.
  var connectDeadline: Milliseconds = 0
  /// How long a client may take nothing of an upstream's answer; `nil` if the answer is the gate's.
  var forwardedPatience: Duration?
  /// What the upstream answered so far.
  var upstreamInbox: [UInt8] = []
  var refusal: UpstreamRefusal?
  /// The connection ends behind the answer at hand.
  var closesAfterAnswer = false
  /// Requests that were answered on this connection.
  var answered = 0

  init(address: SocketAddress, acceptedAt: Milliseconds) {
    self.address = address
    self.acceptedAt = acceptedAt
    peer = Peer(address: address)
  }
}
