internal import Glibc
internal import Locking

/// Terminals in another mode, until they are restored.
public enum TerminalMode {
  private static let originals = LockedValue([Int32: termios]())

  /// Calls `body` while the terminal behind `descriptor` has none of `flags` among its local modes (termios(3)), and
  /// restores it afterwards: without `ECHO` it does not show what is typed, without `ICANON` it hands over each key.
  ///
  /// Text that was typed before and not read is discarded, because it has been shown. So `body` asks its question after
  /// the call, not before. A signal that terminates the process restores the terminal too, after
  /// `TemporaryFileRegistry.endWithSignals()` was called. Without a terminal, only `body` is called.
  public static func with<Value, Failure: Error>(
    _ descriptor: Int32, clearing flags: Int32, _ body: () throws(Failure) -> Value
  ) throws(Failure) -> Value {
    var mode = termios()
    guard tcgetattr(descriptor, &mode) == 0 else { return try body() }
    let original = mode
    mode.c_lflag &= ~tcflag_t(flags)
    originals.withLock { originals in
      originals[descriptor] = original
      _ = tcsetattr(descriptor, TCSAFLUSH, &mode)
    }
    defer { originals.withLock { restore(descriptor, $0.removeValue(forKey: descriptor)) } }
    return try body()
  }

  /// Restores all terminals, for a process that ends now.
  static func restoreAll() {
    originals.withLock { originals in
      for (descriptor, original) in originals { restore(descriptor, original) }
      originals = [:]
    }
  }

  private static func restore(_ descriptor: Int32, _ original: termios?) {
    guard var original else { return }
    _ = tcsetattr(descriptor, TCSADRAIN, &original)
  }
}
