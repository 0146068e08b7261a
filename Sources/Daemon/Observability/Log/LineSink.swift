internal import Dispatch
internal import Glibc
internal import Locking

/// Writes lines to a file descriptor without blocking the caller.
///
/// A line is added to a buffer, which the sink's own queue writes, so a stalled reader cannot stop an event loop. A
/// line is written within 10 ms, together with later ones: waking a thread for each line would cost more than the
/// line. A full buffer drops lines and then reports their number. Lines keep their order and never mix, because each
/// `write(2)` gets whole lines.
public final class LineSink: Sendable {
  private struct Pending {
    var bytes: [UInt8] = []
    var dropped = 0
    var isDraining = false
  }

  private static let gathering = DispatchTimeInterval.milliseconds(10)
  /// Enough for the lines of `gathering` under load.
  private static let keptCapacity = 64 << 10

  private let descriptor: CInt
  private let capacity: Int
  private let notice: @Sendable (_ dropped: Int) -> String
  private let pending = LockedValue(Pending())
  private let queue = DispatchQueue(label: "sallyport.log")

  /// Creates a sink that buffers up to `capacity` bytes.
  ///
  /// It neither owns nor closes `descriptor`, which must stay open as long as lines are written; call `flush` first.
  ///
  /// - Parameter notice: Returns the line that reports the number of dropped lines.
  public init(
    descriptor: CInt, capacity: Int = 1 << 20,
    notice: @escaping @Sendable (_ dropped: Int) -> String = {
      #"{"level":"error","message":"log lines dropped","count":\#($0)}"#
    }
  ) {
    self.descriptor = descriptor
    self.capacity = capacity
    self.notice = notice
  }

  /// Queues `line` and a line end.
  public func write(_ line: String) { write(Array(line.utf8)) }

  /// Queues `line`, in UTF-8, and a line end.
  public func write(_ line: [UInt8]) {
    let starts = pending.withLock { pending in
      guard pending.bytes.count + line.count < capacity else {
        pending.dropped += 1
        return false
      }
      pending.bytes += line
      pending.bytes.append(UInt8(ascii: "\n"))
      defer { pending.isDraining = true }
      return !pending.isDraining
    }
    if starts { queue.asyncAfter(deadline: .now() + Self.gathering) { self.drain() } }
  }

  /// Waits until all queued lines are written, at most for `patience`: a stalled reader must not prevent the process
  /// from exiting. Call it only at the exit, not on an event loop.
  ///
  /// - Returns: Whether all lines were written.
  @discardableResult
  public func flush(patience: Duration = .seconds(2)) -> Bool {
    let done = DispatchSemaphore(value: 0)
    queue.async {
      self.drain()
      done.signal()
    }
    let (seconds, attoseconds) = patience.components
    let limit = DispatchTime.now() + .seconds(Int(seconds)) + .nanoseconds(Int(attoseconds / 1_000_000_000))
    return done.wait(timeout: limit) == .success
  }

  private func drain() {
    var bytes: [UInt8] = []
    while takePending(into: &bytes) { writeAll(bytes) }
  }

  /// Exchanges `bytes`, which are written, for the pending ones. Returns `false` if there are none.
  ///
  /// The memory of the written bytes is used for later lines, unless a burst made it large.
  private func takePending(into bytes: inout [UInt8]) -> Bool {
    bytes.removeAll(keepingCapacity: bytes.capacity <= Self.keptCapacity)
    return pending.withLock { pending in
      if pending.dropped > 0 {
        pending.bytes += Array((notice(pending.dropped) + "\n").utf8)
        pending.dropped = 0
      }
      swap(&pending.bytes, &bytes)
      if bytes.isEmpty { pending.isDraining = false }
      return !bytes.isEmpty
    }
  }

  private func writeAll(_ bytes: [UInt8]) {
    bytes.withUnsafeBytes { buffer in
      var rest = buffer[...]
      while !rest.isEmpty {
        let count = Glibc.write(descriptor, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count)
        if count > 0 {
          rest = rest.dropFirst(count)
        } else if errno == EAGAIN {
          var entry = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
          _ = poll(&entry, 1, -1)
        } else if errno != EINTR {
          // The log itself failed, so no line can report it.
          return
        }
      }
    }
  }
}
