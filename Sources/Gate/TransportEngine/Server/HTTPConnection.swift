internal import Transport

/// The state of a connection while it speaks HTTP.
///
/// What belongs to one request is in `request`, which is replaced as a whole when the next one begins. Everything else
/// lives as long as the connection.
///
/// Only the connection's loop uses it. As in `EventLoop`, accesses are short, and their exclusiveness is not checked at
/// run time.
final class HTTPConnection {
  @exclusivity(unchecked)
  var hello = ClientHelloGuard()
  /// The address of the socket, until a trusted proxy reports the client's.
  var address: SocketAddress
  let acceptedAt: Milliseconds
  /// When the TLS handshake was completed; `nil` before that, and without TLS.
  var handshakeEndedAt: Milliseconds?
  @exclusivity(unchecked)
  var peer: Peer
  /// The digests of the authorities that verified a client certificate.
  var clientAuthorities: Set<[UInt8]> = []
  /// Plaintext from the client that is not yet parsed. It may hold the beginning of the next request.
  @exclusivity(unchecked)
  var inbox: [UInt8] = []
  /// The complete lines of a head of which `inbox` has the beginning; `nil` unless it arrived in more than two pieces.
  var scannedFields: ScannedFields?
  /// The number of requests that were answered on this connection.
  @exclusivity(unchecked)
  var answered = 0
  /// How long the client may read nothing of the latest response, if that came from an upstream: the kernel may still
  /// buffer megabytes of it. `nil` if the response came from the gate.
  var forwardedPatience: Duration?
  @exclusivity(unchecked)
  var request = RequestState(id: "")

  init(address: SocketAddress, acceptedAt: Milliseconds) {
    self.address = address
    self.acceptedAt = acceptedAt
    peer = Peer(address: address)
  }
}

/// The state of one request, from its first byte to the end of its response.
struct RequestState {
  let id: String
  var head: RequestHead?
  /// An empty line before the request was skipped.
  var hasSkippedLine = false
  /// Reads the body for the responder, until it is complete.
  var bodyReader: BodyReader?
  /// The body has not been read: it is forwarded as it arrives.
  var isBodyPending = false
  /// The body has been read for the responder.
  var isBodyRead = false
  /// The opening handshake of the client, for which the gate asks the upstream.
  var upgrade: UpgradeIntent?
  /// The head of the request that asks the upstream for the upgrade.
  var upgradeHead: [UInt8] = []
  /// The ordinary request that is being forwarded.
  var forward: Forward?
  var attempt = UpstreamAttempt()
  /// The bytes of the upstream's response that are not yet parsed.
  var upstreamInbox: [UInt8] = []
  var upstreamRefusal: UpstreamRefusal?
  /// The connection closes after the response.
  var closesAfterAnswer = false

  init(id: String) { self.id = id }
}

/// The addresses of an upstream, of which one at a time is tried.
struct UpstreamAttempt {
  /// When the connection attempts, the TLS handshake and the wait for the 101 time out together.
  var deadline: Milliseconds = 0
  /// When the attempts at the addresses of the current server, and its TLS handshake, time out together.
  private(set) var serverDeadline: Milliseconds = 0
  /// The number of the current server, from 1.
  private(set) var server = 0
  /// The addresses that have not been tried yet.
  private(set) var remaining: ArraySlice<SocketAddress> = []
  /// The address that is being tried, or was tried last.
  private(set) var address: SocketAddress?
  /// Why the address before failed; empty if none has failed.
  var lastError = ""
  /// The queue of the Unix socket was full at the last attempt; it is tried again after `pause`.
  private(set) var waitsForRoom = false

  /// The least milliseconds between two attempts at a Unix socket whose queue is full. The timers of the loop make them
  /// `TimerWheel.tick`.
  static let pause: Milliseconds = 10

  /// Begins with a server. If another can be tried after it, it gets half of the remaining time.
  mutating func startServer(hasAlternative: Bool, at now: Milliseconds) {
    server += 1
    serverDeadline = hasAlternative && deadline > now ? now + (deadline - now + 1) / 2 : deadline
    start([])
  }

  mutating func start(_ addresses: [SocketAddress]) {
    remaining = addresses[...]
    address = nil
    lastError = ""
    waitsForRoom = false
  }

  /// Takes back the current address, to try it again after `pause`.
  ///
  /// - Returns: Whether the server's time allows that.
  mutating func waitForRoom(at now: Milliseconds) -> Bool {
    waitsForRoom = address != nil && now + Self.pause < serverDeadline
    if waitsForRoom, let address { remaining = [address] + remaining }
    return waitsForRoom
  }

  /// Returns the next address to try; `nil` if none is left.
  mutating func next() -> SocketAddress? {
    guard let next = remaining.popFirst() else { return nil }
    address = next
    waitsForRoom = false
    return next
  }

  func mayTryNext(at now: Milliseconds) -> Bool { !remaining.isEmpty && now < serverDeadline }

  /// Returns when the attempt at the current address times out. Each address gets an equal share of the remaining
  /// time, but at least a second, so that a silent one does not use the time of the others.
  func nextTimeout(at now: Milliseconds) -> Milliseconds {
    guard !remaining.isEmpty, serverDeadline > now else { return serverDeadline }
    let share = (serverDeadline - now) / Milliseconds(remaining.count + 1)
    return min(serverDeadline, now + max(share, 1000))
  }

  var description: String { address.map(String.init(describing:)) ?? "connect" }
}
