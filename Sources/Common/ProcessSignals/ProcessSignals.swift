internal import CLinux
@preconcurrency internal import Dispatch
internal import Glibc
internal import Locking

/// The signals that this process handles instead of their default action.
///
/// Dispatch's signal sources are not used. They miss a signal that the process does not ignore, and lose one that
/// arrives after the process ignores it and before the source is active: the sender would wait for an exit that never
/// happens.
public enum ProcessSignals {
  /// Calls `body` for each of the signals `numbers` that arrives after the return of this function, on a queue, one
  /// after another. Several signals of one number at the same time may be delivered once (signal(7)).
  ///
  /// No signal is lost: one that arrives earlier has the previous effect, which is termination by default. A previous
  /// handler for one of `numbers` is replaced. If no descriptor is available (`EMFILE`), nothing changes.
  public static func hear(_ numbers: [Int32], _ body: @escaping @Sendable (Int32) -> Void) {
    guard source != nil else { return }
    bodies.withLock { bodies in for number in numbers { bodies[number] = body } }
    for number in numbers { _ = signals_catch(number) }
  }

  /// Restores the default action of `numbers`.
  public static func obey(_ numbers: [Int32]) {
    for number in numbers { _ = signal(number, SIG_DFL) }
    bodies.withLock { bodies in for number in numbers { bodies[number] = nil } }
  }

  /// Ignores `numbers` from now on.
  public static func ignore(_ numbers: [Int32]) {
    for number in numbers { _ = signal(number, SIG_IGN) }
    bodies.withLock { bodies in for number in numbers { bodies[number] = nil } }
  }

  /// Restores the default action of SIGCHLD, which a process can inherit as ignored. The programs that this process
  /// starts then keep their process ids and their statuses until it has waited for them (wait(2)). Otherwise the kernel
  /// discards both when a program exits.
  ///
  /// Call it before the first program is started.
  public static func keepEndedChildren() { obey([SIGCHLD]) }

  private static let bodies = LockedValue([Int32: @Sendable (Int32) -> Void]())

  private static let source: (any DispatchSourceRead)? = {
    let reader = signals_open()
    guard reader >= 0 else { return nil }
    let source = DispatchSource.makeReadSource(fileDescriptor: reader, queue: DispatchQueue(label: "signals"))
    source.setEventHandler {
      var numbers = [UInt8](repeating: 0, count: 64)
      let count = read(reader, &numbers, numbers.count)
      for number in numbers.prefix(max(count, 0)).map(Int32.init) {
        let body = bodies.withLock { $0[number] }
        body?(number)
      }
    }
    source.resume()
    return source
  }()
}
