internal import Glibc
public import Logging
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix
public import ServiceLifecycle

/// Serves the operators on a Unix socket with mode 0600.
///
/// One request per connection, within one deadline, on a thread of its own: no client's request can delay an operator.
/// The last service to stop, so that status and readiness are answered during a shutdown.
public struct AdminServer: Service {
  /// The limits of the connections.
  public struct Limits: Sendable {
    /// The maximum number of connections. A further one closes the oldest one that has no request in work; if all have
    /// one, the further one is closed.
    public var connections = 64
    /// The maximum bytes of a request.
    public var bytes = 16 << 10
    /// The time for the request to arrive.
    public var request = Duration.seconds(10)
    /// The time for the whole exchange. Longer than clients wait for the answer.
    public var exchange = Duration.seconds(75)

    public init() {}
  }

  private let router: AdminRouter
  private let path: String
  private let limits: Limits
  private let logger: Logger

  public init(_ router: AdminRouter, path: String, limits: Limits = Limits(), logger: Logger) {
    self.router = router
    self.path = path
    self.limits = limits
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
    let connections = AdminConnections(atMost: limits.connections)
    let descriptor = try bindSocket()
    let own = SocketFile(at: path)
    let channel = try await ServerBootstrap(group: group)
      .childChannelInitializer { [router, limits] channel in
        channel.eventLoop.makeCompletedFuture {
          let pipeline = channel.pipeline.syncOperations
          try pipeline.addHandler(ByteBudget(limits.bytes))
          try pipeline.configureHTTPServerPipeline(withPipeliningAssistance: false)
          try pipeline.addHandler(AdminConnection(router, connections, limits))
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
    while !connections.isEmpty, ContinuousClock.now < end {
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
