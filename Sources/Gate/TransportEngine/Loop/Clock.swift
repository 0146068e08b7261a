internal import Glibc

/// Milliseconds of a clock that never jumps, for deadlines alone.
typealias Milliseconds = Int64

/// What the monotonic clock shows, to within one tick of the kernel (1 to 4 ms).
func monotonicMilliseconds() -> Milliseconds {
  var time = timespec()
  clock_gettime(CLOCK_MONOTONIC_COARSE, &time)
  return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
}

extension Duration {
  /// Rounded up, so that a deadline never comes early.
  var milliseconds: Milliseconds {
    let (seconds, attoseconds) = components
    return seconds * 1000 + (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000
  }
}
