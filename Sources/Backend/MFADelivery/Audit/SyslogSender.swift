internal import Foundation
internal import Glibc
internal import HTTPClientTransport
internal import HTTPExchange
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
  private let target: SyslogTarget
  private let patience: Duration
  private var channel: (any Channel)?

  /// - Parameter patience: the time for a connection and one batch.
  init(_ target: SyslogTarget, patience: Duration = .seconds(10)) {
    self.target = target
    self.patience = patience
  }

  /// Sends messages. Syslog has no acknowledgement: what a receiver loses after it has taken the bytes is lost.
  ///
  /// - Throws: `AuditExportFault` if the target cannot be reached or does not take the bytes in time.
  func send(_ messages: [String]) async throws(AuditExportFault) {
    switch target {
    case .local(let path): try sendDatagrams(messages, to: .init(unixDomainSocketPath: path))
    case .udp(let host, let port):
      let address: SocketAddress
      do { address = try await Self.resolve(host, port) } catch {
        throw AuditExportFault(reason: ConnectionFault.reason(of: error))
      }
      try sendDatagrams(messages, to: address)
    case .tcp, .tls:
      let bytes = ByteBuffer(string: messages.map(SyslogMessage.framed).joined())
      let late = AuditExportFault(reason: "the receiver did not take the messages in time")
      do throws(AuditExportFault) {
        try await ExchangeDeadline.within(patience, expired: late, cancelled: late) {
          [self] () async throws(AuditExportFault) in try await write(bytes)
        }
      } catch {
        close()
        throw error
      }
    }
  }

  /// Closes the connection, if there is one.
  func close() {
    channel?.close(promise: nil)
    channel = nil
  }

  private func write(_ bytes: ByteBuffer) async throws(AuditExportFault) {
    do {
      let open = try await openChannel()
      try await open.writeAndFlush(bytes)
    } catch {
      throw AuditExportFault(reason: ConnectionFault.reason(of: error))
    }
  }

  private func openChannel() async throws -> any Channel {
    if let channel, channel.isActive { return channel }
    let (host, port, tls): (String, Int, (NIOSSLContext, String?)?)
    switch target {
    case .tcp(let name, let number): (host, port, tls) = (name, number, nil)
    case .tls(let name, let number, let authority):
      var configuration = TLSConfiguration.makeClientConfiguration()
      configuration.minimumTLSVersion = .tlsv12
      if let authority { configuration.trustRoots = .file(authority) }
      // SNI must not contain an address (RFC 6066, section 3).
      let sni = (try? SocketAddress(ipAddress: name, port: 0)) == nil ? name : nil
      (host, port, tls) = (name, number, (try NIOSSLContext(configuration: configuration), sni))
    case .local, .udp: preconditionFailure("datagrams have no channel")
    }
    let new = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .connectTimeout(.seconds(5))
      .channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          if let tls {
            try channel.pipeline.syncOperations.addHandler(
              NIOSSLClientHandler(context: tls.0, serverHostname: tls.1))
          }
          // A receiver sends nothing; an end of its side ends the connection.
          try channel.pipeline.syncOperations.addHandler(Discarding())
        }
      }
      .connect(host: host, port: port).get()
    channel = new
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

/// Reads and drops what a receiver sends.
private final class Discarding: ChannelInboundHandler, Sendable {
  typealias InboundIn = ByteBuffer

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {}

  func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}
