internal import Glibc

/// The wait for input that a person or another program may never send.
enum ReadableInput {
  /// Waits until a read of `descriptor` does not block. Without `end`, waits for as long as that takes.
  ///
  /// - Returns: `false` if `end` comes first.
  static func wait(for descriptor: Int32, until end: ContinuousClock.Instant?) -> Bool {
    while true {
      var wanted = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
      let count = poll(&wanted, 1, milliseconds(until: end))
      // The read reports what is wrong with a descriptor.
      if count > 0 || count < 0 && errno != EINTR { return true }
      if let end, ContinuousClock.now >= end { return false }
    }
  }

  /// The time until `end` for poll(2), rounded up; -1 without `end`.
  static func milliseconds(until end: ContinuousClock.Instant?) -> Int32 {
    guard let end else { return -1 }
    let (seconds, attoseconds) = max(end - ContinuousClock.now, .zero).components
    return Int32(clamping: min(seconds, 1_000_000) * 1000 + attoseconds / 1_000_000_000_000_000 + 1)
  }
}
