internal import Glibc

/// Milliseconds of the monotonic clock, for deadlines only.
typealias Milliseconds = Int64

/// Returns the time of the monotonic clock, with the resolution of a kernel tick (1 to 4 ms).
func monotonicMilliseconds() -> Milliseconds {
  var time = timespec()
  clock_gettime(CLOCK_MONOTONIC_COARSE, &time)
  return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
}

extension Duration {
  /// The duration in milliseconds, rounded up, so that a deadline never fires early.
  var milliseconds: Milliseconds { Milliseconds((attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000) }
}
