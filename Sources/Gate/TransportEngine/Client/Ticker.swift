internal import CLinux
internal import Glibc

/// Calls a closure on its loop at an interval finer than the loop's timers.
final class Ticker: LoopChannel {
  private let timer: Int32
  private let body: @Sendable () -> Bool

  /// - Parameter body: Returns `false` to stop the ticker.
  init(every interval: Duration, _ body: @escaping @Sendable () -> Bool) throws(SystemCallError) {
    timer = try attempt("timerfd") { shim_timerfd(interval.nanoseconds) }
    self.body = body
  }

  deinit { close(timer) }

  func start(in loop: EventLoop) {
    loop.insert(self)
    loop.watch(timer, events: Readiness.input, data: EventLoop.data(token))
  }

  override func ready(_ events: UInt32, in loop: EventLoop) {
    var count: UInt64 = 0
    guard read(timer, &count, 8) == 8, !body() else { return }
    abandon(in: loop)
  }

  override func abandon(in loop: EventLoop) {
    loop.unwatch(timer)
    loop.remove(self)
  }
}

extension Duration {
  /// The duration in nanoseconds, at least 1.
  fileprivate var nanoseconds: Int64 {
    let (seconds, attoseconds) = components
    return max(1, seconds * 1_000_000_000 + attoseconds / 1_000_000_000)
  }
}

extension ClientEngine {
  /// Runs `body` on the loop's thread, where drivers run, and returns its value.
  public func run<Value: Sendable>(_ body: @escaping @Sendable () -> Value) async -> Value {
    await withCheckedContinuation { continuation in loop.execute { _ in continuation.resume(returning: body()) } }
  }

  /// Calls `body` on the loop's thread every `interval`, as precisely as the kernel can, until it returns `false`.
  ///
  /// - Throws: `ClientError.unreachable` if the system has no descriptors left.
  public func tick(every interval: Duration, _ body: @escaping @Sendable () -> Bool) throws(ClientError) {
    let ticker: Ticker
    do throws(SystemCallError) {
      ticker = try Ticker(every: interval, body)
    } catch {
      throw .unreachable(error.description)
    }
    let handed = LoopChannelReference(ticker)
    loop.execute { loop in handed.ticker.start(in: loop) }
  }
}

/// Carries a ticker to its loop.
///
/// `@unchecked Sendable`: the thread that created the ticker does not touch it again.
private final class LoopChannelReference: @unchecked Sendable {
  let ticker: Ticker
  init(_ ticker: Ticker) { self.ticker = ticker }
}
