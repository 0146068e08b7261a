internal import Glibc
internal import Locking
public import Logging
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix
public import ServiceLifecycle

/// Serves the operators on a Unix socket with mode 0600.
///
/// One request per connection, on a thread of its own: no client's request can delay an operator. The last service to
/// stop, so that status and readiness are answered during a shutdown.
public struct AdminServer: Service {
  private let router: AdminRouter
  private let path: String
  private let logger: Logger

  public init(_ router: AdminRouter, path: String, logger: Logger) {
    self.router = router
    self.path = path
    self.logger = logger
  }

  /// The socket cannot be created.
  public struct ListenError: Error, CustomStringConvertible {
    public let description: String
  }

  /// The time that open requests have after the end of the other services.
  private static let patience = Duration.seconds(2)

  /// Serves until the graceful shutdown of its service group.
  public func run() async throws { try await OperatorThreads.with(serve) }

  private func serve(on group: MultiThreadedEventLoopGroup) async throws {
    let connections = LockedValue(0)
    let descriptor = try bindSocket()
    let own = SocketFile(at: path)
    let channel = try await ServerBootstrap(group: group)
      .childChannelInitializer { [router] channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.configureHTTPServerPipeline(withPipeliningAssistance: false)
          try channel.pipeline.syncOperations.addHandler(AdminConnection(router, connections))
        }
      }
      .withBoundSocket(descriptor).get()
    // Another backend may have replaced the file: its socket stays.
    defer { if SocketFile(at: path) == own { unlink(path) } }
    logger.info("admin server listening", metadata: ["socket": "\(path)"])
    await withTaskCancellationOrGracefulShutdownHandler {
      try? await channel.closeFuture.get()
    } onCancelOrGracefulShutdown: {
      channel.close(promise: nil)
    }
    let end = ContinuousClock.now + Self.patience
    while connections.withLock({ $0 > 0 }), ContinuousClock.now < end {
      guard (try? await Task.sleep(for: .milliseconds(10))) != nil else { return }
    }
  }

  /// Binds the socket. A client cannot connect before `listen`, so none ever meets the default mode.
  private func bindSocket() throws(ListenError) -> Int32 {
    let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { throw Self.fault() }
    do throws(ListenError) {
      var address = sockaddr_un()
      address.sun_family = sa_family_t(AF_UNIX)
      let fits = withUnsafeMutableBytes(of: &address.sun_path) { buffer in
        guard path.utf8.count < buffer.count else { return false }
        buffer.copyBytes(from: path.utf8)
        return true
      }
      guard fits else { throw ListenError(description: "the path of the socket is too long") }
      // The command has found that no process listens here.
      unlinkSocket()
      let status = withUnsafePointer(to: address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
        }
      }
      guard status == 0, chmod(path, 0o600) == 0 else { throw Self.fault() }
      return descriptor
    } catch {
      close(descriptor)
      throw error
    }
  }

  /// Removes the file of an earlier process. Any other file stays, and `bind` fails.
  private func unlinkSocket() {
    var status = stat()
    if lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFSOCK { unlink(path) }
  }

  private static func fault() -> ListenError { ListenError(description: String(cString: strerror(errno))) }
}

/// The identity of a file: two files at one path differ in it, as long as both exist.
private struct SocketFile: Equatable {
  private let device: dev_t
  private let number: ino_t

  /// `nil` if there is no file.
  init?(at path: String) {
    var status = stat()
    guard lstat(path, &status) == 0 else { return nil }
    (device, number) = (status.st_dev, status.st_ino)
  }
}

/// One connection to the admin socket, with one request.
private final class AdminConnection: ChannelInboundHandler, Sendable {
  typealias InboundIn = HTTPServerRequestPart
  typealias OutboundOut = HTTPServerResponsePart

  private let router: AdminRouter
  private let connections: LockedValue<Int>
  private let head = LockedValue<HTTPRequestHead?>(nil)

  init(_ router: AdminRouter, _ connections: LockedValue<Int>) {
    self.router = router
    self.connections = connections
  }

  func channelActive(context: ChannelHandlerContext) { connections.withLock { $0 += 1 } }

  func channelInactive(context: ChannelHandlerContext) { connections.withLock { $0 -= 1 } }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .head(let new): head.withLock { $0 = new }
    // No request of an operator has a body.
    case .body: break
    case .end:
      let request = head.withLock { head in
        defer { head = nil }
        return head
      }
      guard let request else { return }
      let channel = context.channel
      Task { [router] in
        let answer = await router.answer(
          request.method.rawValue, request.uri, accept: request.headers.first(name: "Accept"),
          from: await Self.peer(of: channel, request.headers))
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
      return AdminPeer(user: credentials.1, caller: caller)
    } catch {
      return nil
    }
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

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
