internal import CLinux
internal import Glibc

/// Calls a closure on its loop at an interval finer than that of the loop's timers.
final class Ticker: LoopChannel {
  private let timer: Int32
  private let body: @Sendable () -> Bool

  /// - Parameter body: `false` ends the ticking.
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
  /// At least 1.
  fileprivate var nanoseconds: Int64 {
    let (seconds, attoseconds) = components
    return max(1, seconds * 1_000_000_000 + attoseconds / 1_000_000_000)
  }
}

extension ClientEngine {
  /// Runs `body` on the loop's thread, where drivers live, and gives what it gives.
  public func run<Value: Sendable>(_ body: @escaping @Sendable () -> Value) async -> Value {
    await withCheckedContinuation { continuation in loop.execute { _ in continuation.resume(returning: body()) } }
  }

  /// Calls `body` on the loop's thread every `interval`, as exactly as the kernel can, until it gives `false`.
  public func tick(every interval: Duration, _ body: @escaping @Sendable () -> Bool) throws(ClientFault) {
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

/// A ticker on its way to its loop.
///
/// `@unchecked Sendable`: the thread that made it does not touch it again.
private final class LoopChannelReference: @unchecked Sendable {
  let ticker: Ticker
  init(_ ticker: Ticker) { self.ticker = ticker }
}
