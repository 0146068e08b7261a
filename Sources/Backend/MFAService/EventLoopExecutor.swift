internal import NIOCore
internal import NIOPosix

/// Runs the tasks of a connection on its event loop.
///
/// A request then stays on one thread, from its bytes to its answer, except while it waits for the store's writer or
/// for a server. What runs here keeps the loop from its other connections, so it must not block.
final class EventLoopExecutor: TaskExecutor {
  private let loop: any EventLoop

  init(_ loop: any EventLoop) { self.loop = loop }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    loop.execute { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }
}

/// The threads of the operators' listeners.
enum OperatorThreads {
  /// Calls `body` with a group of threads of its own.
  ///
  /// Requests of clients run on the shared threads (`EventLoopExecutor`), and the worst of them may hold all of these.
  /// The admin socket and the probes must answer all the same.
  static func with(_ body: (MultiThreadedEventLoopGroup) async throws -> Void) async throws {
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    let result: Result<Void, any Error>
    do { result = .success(try await body(group)) } catch { result = .failure(error) }
    try? await group.shutdownGracefully()
    try result.get()
  }
}
