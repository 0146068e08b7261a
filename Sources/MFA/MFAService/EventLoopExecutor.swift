internal import NIOCore

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
