internal import CSignals
@preconcurrency internal import Dispatch
internal import Glibc
internal import Locking

/// The signals that this process handles itself, instead of their default action.
///
/// Dispatch's signal sources are not used. They miss a signal that the process does not ignore, and lose one that
/// arrives after it is ignored and before the source is active: the sender would wait for an exit that never comes.
public enum ProcessSignals {
  /// From the return on `body` is called with each of `numbers` that comes, on a queue, one after the other. Signals
  /// of one number that come at once may be one, as signal(7) has it.
  ///
  /// None is lost: one that comes earlier does what it did before, which is to end the process unless something else
  /// was asked for. Who heard one of `numbers` before hears it no more. Without a descriptor to be had (`EMFILE`)
  /// everything stays as it was.
  public static func hear(_ numbers: [Int32], _ body: @escaping @Sendable (Int32) -> Void) {
    guard source != nil else { return }
    bodies.withLock { bodies in for number in numbers { bodies[number] = body } }
    for number in numbers { _ = signals_catch(number) }
  }

  /// From now on `numbers` do what they do by default.
  public static func obey(_ numbers: [Int32]) {
    for number in numbers { _ = signal(number, SIG_DFL) }
    bodies.withLock { bodies in for number in numbers { bodies[number] = nil } }
  }

  /// From now on `numbers` do nothing to the process.
  public static func ignore(_ numbers: [Int32]) {
    for number in numbers { _ = signal(number, SIG_IGN) }
    bodies.withLock { bodies in for number in numbers { bodies[number] = nil } }
  }

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
