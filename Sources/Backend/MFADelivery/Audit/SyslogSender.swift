internal import Foundation
internal import Glibc
internal import HTTPClientTransport
internal import Wire
internal import Locking
internal import NIOCore
internal import NIOPosix
internal import NIOSSL

/// Where syslog messages go.
public enum SyslogTarget: Sendable, Hashable {
  /// A datagram socket of this machine.
  case local(path: String)
  /// One message a datagram (RFC 5426).
  case udp(host: String, port: Int)
  /// Messages with their lengths (RFC 6587).
  case tcp(host: String, port: Int)
  /// The same over TLS (RFC 5425).
  ///
  /// - Parameter authority: a PEM file with the roots to trust instead of the system's roots.
  case tls(host: String, port: Int, authority: String?)
}

/// Sends messages to one target, over one connection as long as it lasts.
actor SyslogSender {
  /// The most bytes of messages that are repeated after a broken connection.
  private static let mostRepeated = 1 << 18

  private let target: SyslogTarget
  private let patience: Duration
  private var connection: Connection?
  /// The last messages that were sent by TCP or TLS, framed.
  private var recent: [String] = []
  private var sizeOfRecent = 0
  /// Whether the receiver may have lost recent messages: its last connection broke.
  private var repeats = false

  private struct Connection {
    let channel: any Channel
    /// Whether it has ended by an error, such as a reset.
    let isBroken: LockedValue<Bool>
  }

  /// - Parameter patience: the time for a connection, one batch and its acknowledgement.
  init(_ target: SyslogTarget, patience: Duration = .seconds(10)) {
    self.target = target
    self.patience = patience
  }

  /// Sends messages. Syslog has no acknowledgement of its own. By TCP and TLS this returns when the receiver's system
  /// has acknowledged the bytes. A receiver that is killed before it reads them resets its
  /// connection; the next call then repeats recent messages.
  ///
  /// - Throws: `AuditExportFault` if the target cannot be reached or does not acknowledge the bytes in time.
  func send(_ messages: [String]) async throws(AuditExportFault) {
    switch target {
    case .local(let path): try sendDatagrams(messages, to: .init(unixDomainSocketPath: path))
    case .udp(let host, let port):
      let address: SocketAddress
      do { address = try await Self.resolve(host, port) } catch {
        throw AuditExportFault(reason: ConnectionFault.reason(of: error))
      }
      try sendDatagrams(messages, to: address)
    case .tcp(let host, let port): try await sendFramed(messages, to: Receiver(host: host, port: port))
    case .tls(let host, let port, let authority):
      try await sendFramed(messages, to: Receiver(host: host, port: port, security: .init(authority: authority)))
    }
  }

  /// Where a channel leads.
  private struct Receiver {
    struct Security { let authority: String? }
    let host: String
    let port: Int
    /// `nil` without TLS.
    var security: Security?
  }

  private func sendFramed(_ messages: [String], to receiver: Receiver) async throws(AuditExportFault) {
    let framed = messages.map(SyslogMessage.framed)
    let late = AuditExportFault(reason: "the receiver did not take the messages in time")
    do throws(AuditExportFault) {
      try await ExchangeDeadline.within(patience, expired: late, cancelled: late) {
        [self] () async throws(AuditExportFault) in try await write(framed, to: receiver)
      }
    } catch {
      close()
      throw error
    }
  }

  /// Closes the connection, if there is one.
  func close() {
    connection?.channel.close(promise: nil)
    connection = nil
  }

  private func write(_ messages: [String], to receiver: Receiver) async throws(AuditExportFault) {
    do {
      let channel = try await openChannel(to: receiver)
      let all = repeats ? recent + messages : messages
      // Until it is known that the bytes have arrived.
      repeats = true
      try await channel.writeAndFlush(ByteBuffer(string: all.joined()))
      try await Self.waitForAcknowledgement(on: channel)
      try Task.checkCancellation()
      repeats = false
      keep(messages)
    } catch {
      throw AuditExportFault(reason: ConnectionFault.reason(of: error))
    }
  }

  private func keep(_ messages: [String]) {
    recent += messages
    sizeOfRecent += messages.reduce(0) { $0 + $1.utf8.count }
    while sizeOfRecent > Self.mostRepeated, let oldest = recent.first {
      sizeOfRecent -= oldest.utf8.count
      recent.removeFirst()
    }
  }

  /// Returns when all bytes that were written are acknowledged.
  private static func waitForAcknowledgement(on channel: any Channel) async throws {
    guard let options = channel as? any SocketOptionProvider else { return }
    var pause = Duration.milliseconds(1)
    while true {
      let state: TCPState = try await options.unsafeGetSocketOption(
        level: .tcp, name: NIOBSDSocket.Option(rawValue: TCP_INFO)
      ).get()
      if state.unacknowledgedSegments == 0, state.unsentBytes == 0 { return }
      try await Task.sleep(for: pause)
      pause = min(pause * 2, .milliseconds(50))
    }
  }

  private func openChannel(to receiver: Receiver) async throws -> any Channel {
    if let connection {
      if connection.channel.isActive { return connection.channel }
      if connection.isBroken.withLock(\.self) { repeats = true }
      self.connection = nil
    }
    let tls: (NIOSSLContext, String?)? = try receiver.security.map { security in
      var configuration = TLSConfiguration.makeClientConfiguration()
      configuration.minimumTLSVersion = .tlsv12
      if let authority = security.authority { configuration.trustRoots = .file(authority) }
      // SNI must not contain an address (RFC 6066, section 3).
      let sni = (try? SocketAddress(ipAddress: receiver.host, port: 0)) == nil ? receiver.host : nil
      return (try NIOSSLContext(configuration: configuration), sni)
    }
    let isBroken = LockedValue(false)
    // The system gives up a connection whose bytes stay unacknowledged, also one that was closed: they are repeated.
    let userTimeout = Int(CInt(clamping: patience.components.seconds &* 1000))
    let new = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .connectTimeout(.seconds(5))
      .channelOption(.tcpOption(NIOBSDSocket.Option(rawValue: TCP_USER_TIMEOUT)), value: userTimeout)
      .channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          if let tls {
            try channel.pipeline.syncOperations.addHandler(
              NIOSSLClientHandler(context: tls.0, serverHostname: tls.1))
          }
          // A receiver sends nothing; an end of its side ends the connection.
          try channel.pipeline.syncOperations.addHandler(Discarding(isBroken))
        }
      }
      .connect(host: receiver.host, port: receiver.port).get()
    // The caller did not wait for it.
    guard !Task.isCancelled else {
      new.close(promise: nil)
      throw CancellationError()
    }
    connection = Connection(channel: new, isBroken: isBroken)
    return new
  }

  // MARK: Datagrams

  private static func resolve(_ host: String, _ port: Int) async throws -> SocketAddress {
    if let address = try? SocketAddress(ipAddress: host, port: port) { return address }
    return try await NIOThreadPool.singleton.runIfActive {
      try SocketAddress.makeAddressResolvingHost(host, port: port)
    }
  }

  private func sendDatagrams(
    _ messages: [String], to address: @autoclosure () throws -> SocketAddress
  ) throws(AuditExportFault) {
    guard let address = try? address() else { throw AuditExportFault(reason: "the address is not valid") }
    let descriptor = socket(
      address.protocol.rawValue,
      Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue),
      0)
    guard descriptor >= 0 else { throw .system("no socket", errno) }
    defer { Glibc.close(descriptor) }
    let isConnected = address.withSockAddr { pointer, size in connect(descriptor, pointer, socklen_t(size)) == 0 }
    guard isConnected else { throw .system("cannot reach the receiver", errno) }
    for message in messages {
      let bytes = Array(message.utf8)
      // A full buffer empties within moments; a receiver that is stopped is tried again later.
      var tries = 0
      while Glibc.send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL)) < 0 {
        let number = errno
        tries += 1
        guard number == EAGAIN || number == EINTR || number == ENOBUFS, tries < 20 else {
          throw .system("cannot send a message", number)
        }
        var wait = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        _ = poll(&wait, 1, 50)
      }
    }
  }
}

/// The first 152 bytes of the kernel's `tcp_info`, of which Glibc knows 104.
private struct TCPState: Sendable {
  private typealias Eight = (UInt32, UInt32, UInt32, UInt32, UInt32, UInt32, UInt32, UInt32)

  private let start: (UInt32, UInt32, UInt32, UInt32, UInt32, UInt32)
  let unacknowledgedSegments: UInt32
  private let middle: (Eight, Eight, Eight, UInt32, UInt32, UInt32, UInt32, UInt32)
  let unsentBytes: UInt32
  private let end: UInt32
}

/// Reads and drops what a receiver sends, and records an error.
private final class Discarding: ChannelInboundHandler, Sendable {
  typealias InboundIn = ByteBuffer

  private let isBroken: LockedValue<Bool>

  init(_ isBroken: LockedValue<Bool>) { self.isBroken = isBroken }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {}

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    isBroken.withLock { $0 = true }
    context.close(promise: nil)
  }
}
