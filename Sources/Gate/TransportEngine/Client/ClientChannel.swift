internal import COpenSSL
internal import Wire
internal import Glibc
internal import Transport

/// The parameters of a client's opening handshake.
struct ClientHandshake: Sendable {
  let key: String
  let subprotocols: [String]
  let maxMessage: Int
}

/// A connection that the engine opened for itself. Only its loop's thread touches it.
final class ClientChannel: LoopChannel {
  typealias Callback<Value> = @Sendable (Result<Value, ClientError>) -> Void

  /// The operation that the caller is waiting for.
  enum Goal {
    case connection(Callback<Void>)
    case response(to: String, Callback<Response>)
    /// The head of a response. The connection is of no use afterwards: the body is not read.
    case head(Callback<Response>)
    case upgrade(ClientHandshake, Callback<Response>)
    /// Everything that arrives until the connection closes or the time is up, valid or not.
    case everything(Callback<RawAnswer>)
  }

  enum Phase { case resolution, connection, tunnel, handshake, ready, webSocket, closed }

  let host: String
  let port: UInt16
  let name: String
  private let tls: ClientTLS?
  /// The tunnel through a proxy at `host` and `port`; `nil` if the server itself is there.
  private var tunnel: ProxyTunnel?
  private var addresses: ArraySlice<SocketAddress> = []
  /// The IPv4 address to connect from; `nil` for the system's choice.
  private let source: [UInt8]?
  private var lastError = "no address found"
  var phase = Phase.resolution
  var socket = SocketState()
  var goal: Goal?
  /// The deadline of the current operation.
  private var deadline: Milliseconds = 0
  private let timer = UnsafeMutablePointer<TimerNode>.allocate(capacity: 1)
  var inbox: [UInt8] = []
  var answer: (head: ResponseHead, body: BodyReader)?
  /// The maximum length of the body that the current operation accepts.
  var longestBody = 1 << 20
  var webSocket: ClientSocketState?
  /// The driver's socket, which reads the WebSocket instead of `webSocket`.
  var driven: DrivenSocket?
  /// Why the connection was closed; `nil` while it is open.
  private var ending: ClientError?

  init(host: String, port: UInt16, tls: ClientTLS?, name: String, tunnel: ProxyTunnel? = nil, source: [UInt8]? = nil) {
    self.source = source
    self.host = host
    self.port = port
    self.tls = tls
    self.name = name
    self.tunnel = tunnel
    timer.initialize(to: TimerNode())
  }

  deinit {
    socket.close()
    timer.deallocate()
  }

  // MARK: Operations

  /// Starts an operation. Returns `false` if it was refused and its callback has received the error;
  /// nothing may be sent for it then.
  @discardableResult
  func begin(_ goal: Goal, timeout: Duration, in loop: EventLoop) -> Bool {
    let isPossible = if case .connection = goal { phase == .resolution } else { phase == .ready && self.goal == nil }
    guard isPossible else {
      // A server that rejects a client certificate sends its alert after the handshake (RFC 8446, 4.4.2.4), often
      // before any operation has started. So the reason for closing is reported here.
      Self.fail(goal, ending ?? .misused("the connection is busy"))
      return false
    }
    self.goal = goal
    setDeadline(after: timeout, in: loop)
    return true
  }

  func setDeadline(after timeout: Duration, in loop: EventLoop) {
    // A closed channel has left the loop: its timer must not return to the wheel.
    guard phase != .closed else { return }
    timer.pointee.slot = token.slot
    deadline = monotonicMilliseconds() + max(1, timeout.milliseconds)
    loop.timers.schedule(timer, at: deadline)
  }

  func clearDeadline(in loop: EventLoop) { loop.timers.cancel(timer) }

  private static func fail(_ goal: Goal?, _ fault: ClientError) {
    switch goal {
    case .connection(let done): done(.failure(fault))
    case .response(_, let done), .head(let done), .upgrade(_, let done): done(.failure(fault))
    case .everything(let done): done(.failure(fault))
    case nil: break
    }
  }

  /// Closes the connection and fails the current operation with `fault`.
  func end(_ fault: ClientError, in loop: EventLoop) {
    guard phase != .closed else { return }
    phase = .closed
    ending = fault
    clearDeadline(in: loop)
    if socket.isOpen && socket.interest != 0 { loop.unwatch(socket.fd) }
    socket.close()
    let goal = self.goal
    self.goal = nil
    loop.remove(self)
    if case .everything(let done) = goal {
      done(.success(RawAnswer(bytes: inbox, isUnfinished: fault == .timedOut)))
    } else {
      Self.fail(goal, fault)
    }
    webSocket?.lost(fault)
    driven?.lost(fault.description)
  }

  // MARK: Opening

  func resolve(in loop: EventLoop) {
    loop.resolver.resolve(host, port: port) { [token] answer in
      loop.execute { loop in
        guard let channel = loop.slots.channel(token) as? ClientChannel, channel.phase == .resolution else { return }
        switch answer {
        case .success(let addresses):
          channel.addresses = addresses[...]
          channel.phase = .connection
          channel.tryNextAddress(in: loop)
        case .failure(let error):
          channel.endUnreachable(error.description, in: loop)
        }
      }
    }
  }

  /// Connects to an address that needs no resolution.
  func connect(to address: SocketAddress, in loop: EventLoop) {
    addresses = [address]
    phase = .connection
    tryNextAddress(in: loop)
  }

  private func tryNextAddress(in loop: EventLoop) {
    while let address = addresses.popFirst() {
      do throws(SystemCallError) {
        socket = SocketState()
        socket.fd = try Socket.make(for: address)
        if case .unix = address {} else { Socket.disableDelay(on: socket.fd) }
        if let source { try Socket.bind(socket.fd, from: source) }
        _ = try Socket.connect(socket.fd, to: address)
        setInterest(Readiness.output, in: loop)
        shareTime(in: loop)
        return
      } catch {
        lastError = "\(address): \(error)"
        socket.close()
        if waitForRoom(at: address, after: error, in: loop) { return }
      }
    }
    endUnreachable(lastError, in: loop)
  }

  /// Tries a Unix socket whose queue of new connections is full (unix(7)) again after a pause: its server lives, and does
  /// not keep up with many clients at once.
  ///
  /// - Returns: `false` after another error, and if no time is left.
  private func waitForRoom(at address: SocketAddress, after error: SystemCallError, in loop: EventLoop) -> Bool {
    let next = monotonicMilliseconds() + UpstreamAttempt.pause
    guard case .unix = address, error.number == EAGAIN, next < deadline else { return false }
    addresses = [address]
    loop.timers.schedule(timer, at: next)
    return true
  }

  /// Closes the connection. `reason` is about the server, or about the proxy in front of it.
  private func endUnreachable(_ reason: String, in loop: EventLoop) {
    end(.unreachable(tunnel?.proxyFailed(reason) ?? reason), in: loop)
  }

  /// Gives each address an equal share of the remaining time, so that a silent one does not use
  /// the time of the others. The last one gets all of it.
  private func shareTime(in loop: EventLoop) {
    let now = monotonicMilliseconds()
    // In any case: the timer of an address that was silent has fired, and does not fire again by itself.
    loop.timers.schedule(timer, at: now + max(1, (deadline - now) / Milliseconds(addresses.count + 1)))
  }

  private func connected(in loop: EventLoop) {
    if deadline > 0 { loop.timers.schedule(timer, at: deadline) }
    let code = Socket.pendingError(of: socket.fd)
    guard code == 0 else {
      lastError = "\(host):\(port): \(SystemCallError.text(of: code))"
      setInterest(0, in: loop)
      socket.close()
      tryNextAddress(in: loop)
      return
    }
    guard let tunnel else {
      startTLS(in: loop)
      return
    }
    phase = .tunnel
    tunnel.request.withUnsafeBytes { socket.send($0, through: loop.buffers) }
    update(in: loop)
  }

  /// Takes bytes of the proxy, and starts the handshake when the tunnel is open.
  private func tunnelReceived(_ bytes: UnsafeRawBufferPointer, in loop: EventLoop) {
    do throws(ProxyTunnelError) {
      if try tunnel?.receive(bytes) == true { startTLS(in: loop) }
    } catch {
      end(.unreachable(error.description), in: loop)
    }
  }

  private func startTLS(in loop: EventLoop) {
    guard let tls else {
      opened(in: loop)
      return
    }
    guard let stream = tls.makeStream(in: loop.bio, verifying: name) else {
      end(.untrusted(OpenSSLError("TLS").description), in: loop)
      return
    }
    socket.tls = stream
    phase = .handshake
    socket.startHandshake(through: loop.buffers)
    update(in: loop)
  }

  private func opened(in loop: EventLoop) {
    phase = .ready
    clearDeadline(in: loop)
    update(in: loop)
    if case .connection(let done) = goal {
      goal = nil
      done(.success(()))
    }
  }

  // MARK: Events

  override func ready(_ events: UInt32, in loop: EventLoop) {
    if phase == .connection {
      connected(in: loop)
      return
    }
    if events & Readiness.output != 0 {
      socket.drainOutbox(through: loop.buffers)
      webSocket?.drained(socket.outbox.count)
      if socket.outbox.isEmpty { driven?.drained() }
    }
    guard events & ~Readiness.output != 0, socket.isOpen else {
      update(in: loop)
      return
    }
    let reception = socket.receive(into: loop.plain.start, through: loop.buffers)
    if phase == .handshake, socket.failure == nil, socket.isHandshakeDone { opened(in: loop) }
    let bytes = UnsafeRawBufferPointer(start: loop.plain.start, count: reception.count)
    if phase == .tunnel {
      tunnelReceived(bytes, in: loop)
    } else if phase == .webSocket {
      if let driven { driven.receive(bytes) } else { socketReceived(bytes, in: loop) }
    } else {
      inbox.append(contentsOf: bytes)
      readAnswer(hasEnded: reception.ended, in: loop)
    }
    if reception.ended { ended(in: loop) } else { update(in: loop) }
  }

  override func expired(in loop: EventLoop) {
    if isStillFlushing(in: loop) { return }
    guard phase == .connection, !addresses.isEmpty, monotonicMilliseconds() < deadline else {
      if tunnel != nil, phase != .handshake, phase != .ready, phase != .webSocket {
        endUnreachable("no answer within the time allowed", in: loop)
      } else {
        end(.timedOut, in: loop)
      }
      return
    }
    setInterest(0, in: loop)
    socket.close()
    tryNextAddress(in: loop)
  }

  override func abandon(in loop: EventLoop) { end(.lost("the engine stopped"), in: loop) }

  private func ended(in loop: EventLoop) {
    let reason = socket.failure ?? "the server closed the connection"
    switch phase {
    case .handshake: end(.untrusted(certificateFault ?? reason), in: loop)
    case .tunnel: endUnreachable(socket.failure ?? "it closed the connection before it answered CONNECT", in: loop)
    case .webSocket where socket.failure == nil:
      webSocket?.peerEnded()
      end(.lost(reason), in: loop)
    case .resolution, .connection, .ready, .webSocket, .closed: end(.lost(reason), in: loop)
    }
  }

  /// The verification error of the server's certificate; `nil` if there is none.
  private var certificateFault: String? {
    guard let tls = socket.tls else { return nil }
    let result = SSL_get_verify_result(tls)
    guard result != X509_V_OK, let text = X509_verify_cert_error_string(result) else { return nil }
    return "the server's certificate is not valid for \(name): \(String(cString: text))"
  }

  /// Watches for the needed events; closes a connection that has failed.
  func update(in loop: EventLoop) {
    guard socket.isOpen else { return }
    if let failure = socket.failure {
      guard phase != .tunnel else { return endUnreachable(failure, in: loop) }
      end(phase == .handshake ? .untrusted(certificateFault ?? failure) : .lost(failure), in: loop)
      return
    }
    let reads = !socket.hasEnded && webSocket?.isFull != true && driven?.isReading != false
    setInterest((reads ? Readiness.input : 0) | (socket.outbox.isEmpty ? 0 : Readiness.output), in: loop)
  }

  private func setInterest(_ wanted: UInt32, in loop: EventLoop) {
    guard wanted != socket.interest else { return }
    if wanted == 0 {
      loop.unwatch(socket.fd)
    } else if socket.interest == 0 {
      loop.watch(socket.fd, events: wanted, data: EventLoop.data(token))
    } else {
      loop.rewatch(socket.fd, events: wanted, data: EventLoop.data(token))
    }
    socket.interest = wanted
  }

  func transmit(_ bytes: [UInt8], in loop: EventLoop) {
    bytes.withUnsafeBytes { transmit($0, in: loop) }
  }

  func transmit(_ bytes: UnsafeRawBufferPointer, in loop: EventLoop) {
    guard socket.isOpen, phase == .ready || phase == .webSocket else { return }
    socket.send(bytes, through: loop.buffers)
    update(in: loop)
  }
}
