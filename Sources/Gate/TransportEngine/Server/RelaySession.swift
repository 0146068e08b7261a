internal import Transport

typealias SessionRef = UnsafeMutablePointer<RelaySession>

/// One of the two peers of a session.
enum Side {
  case client
  case upstream

  var other: Side { self == .client ? .upstream : .client }
  var index: Int { self == .client ? 0 : 1 }
  var name: SessionSummary.Side { self == .client ? .client : .upstream }
}

/// The state of one peer: its socket, and its side of the WebSocket.
struct SessionEnd {
  var socket = SocketState()
  /// Tracks the frames that this peer sends.
  var frames = FrameTracker()
  /// The beginning of a header or a control frame that this peer sent and that is still incomplete.
  var held = Outbox()
  /// The number of WebSocket bytes from this peer that were passed to the other one.
  var bytes: UInt64 = 0
  /// The gate's pending control frame for this peer. It waits for the end of the frame that is being relayed.
  var pendingFrame: PendingControlFrame?
  /// The gate has sent this peer a Close frame: nothing may follow it.
  var isToldToClose = false
  var lastPing: Milliseconds = 0
  /// When this peer was last passed part of a frame, and not a whole one. The gate can send it no Ping within a frame.
  var lastPart: Milliseconds = 0
  /// Whether this client, which sends no more, was asked whether it still reads.
  var wasAsked = false
  /// The number of the gate's Pings that this peer has not answered.
  var pongsDue = 0
}

/// A control frame that the gate sends between two relayed frames.
enum PendingControlFrame {
  case ping
  case close(CloseCode, reason: String)
}

/// The phase of a session. Each comment names the party that must act next.
enum Phase {
  /// The proxy: the PROXY header with the client's address.
  case preface
  /// The client: the TLS handshake.
  case handshake
  /// The client: the head of a request, or nothing between two requests.
  case head
  /// The client: the rest of a request body.
  case body
  /// The responder.
  case decision
  /// The kernel: the response is being sent, then the next request follows.
  case answer
  /// Name resolution and the connection to the upstream.
  case connection
  /// The upstream: the TLS handshake.
  case upstreamHandshake
  /// The upstream: its 101 or another response.
  case upgrade
  /// Both: the bodies of an ordinary request and its response.
  case forward
  /// Both: WebSocket frames.
  case relay
  /// Both: frames from the client, bytes from the upstream.
  case bridge
  /// The client: messages for a WebSocket service of this process.
  case conversation
  /// The client: the end of its stream, during a lingering close.
  case lingeringClose

  /// Whether nothing is in work for the client, which must send or read before anything follows.
  var waitsForClient: Bool {
    switch self {
    case .preface, .handshake, .head, .body, .answer, .lingeringClose: true
    case .decision, .connection, .upstreamHandshake, .upgrade, .forward, .relay, .bridge, .conversation: false
    }
  }

  /// Whether nothing flows yet between the client and what it asked for.
  var isOpening: Bool {
    switch self {
    case .preface, .handshake, .head, .body, .decision, .answer, .connection, .upstreamHandshake, .upgrade: true
    case .forward, .relay, .bridge, .conversation, .lingeringClose: false
    }
  }
}

/// A connection that a client opened, from TLS to the end of the relay. Plain memory that only its loop touches.
struct RelaySession {
  var token = SlotToken(slot: 0, generation: 0)
  var phase = Phase.handshake
  /// The client at index 0, the upstream at index 1.
  let ends: UnsafeMutablePointer<SessionEnd>
  let timer: UnsafeMutablePointer<TimerNode>
  /// The HTTP state, needed until frames flow. `nil` during the relay.
  var http: HTTPConnection?
  var plan: (any RelayPlan)?
  var endpoint: Endpoint?
  var bounds = RelayBounds()
  /// Set together with the call of `plan.opened`, so that `plan.closed` is called exactly once.
  var openedAt: Milliseconds?
  /// Why the session ends. The first reason counts.
  var end: SessionSummary.End?
  /// The gate closes this session: no frames are relayed after its Close frame.
  var isClosedByGate = false
  /// The place in the order in which clients began to be waited for, while `Phase.waitsForClient`.
  var waitOrder: UInt64 = 0
  /// When a closing session is cut off.
  var closeDeadline: Milliseconds?
  var pingToken: UInt64 = 0
  /// The address block of the client, once its address is known.
  var block: AddressBlock?
  /// The entry in the connection count of its address, if connections are counted.
  var place: ConnectionPlace?

  init() {
    ends = .allocate(capacity: 2)
    ends.initialize(repeating: SessionEnd(), count: 2)
    timer = .allocate(capacity: 1)
    timer.initialize(to: TimerNode())
  }

  func deallocate() {
    for side in 0..<2 {
      ends[side].socket.close()
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
