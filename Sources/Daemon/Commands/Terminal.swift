internal import ByteCoding
internal import Glibc
internal import ProcessSignals

/// The terminal of the user, which is there even if the standard streams are files.
public final class Terminal {
  private let descriptor: Int32
  private var original = termios()

  /// Opens it; `nil` if the process has none.
  public init?() {
    descriptor = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY)
    guard descriptor >= 0 else { return nil }
    guard tcgetattr(descriptor, &original) == 0 else {
      close(descriptor)
      return nil
    }
  }

  deinit { close(descriptor) }

  /// Writes `text`.
  public func write(_ text: String) {
    var bytes = Array(text.utf8)[...]
    while !bytes.isEmpty {
      let count = bytes.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
      if count < 0 && errno != EINTR { return }
      bytes = bytes.dropFirst(max(0, count))
    }
  }

  /// Asks for a line.
  ///
  /// - Parameters:
  ///   - question: May have text of strangers, such as a file's name: characters that steer a terminal are replaced.
  ///   - isSecret: Whether not to show what is typed.
  ///   - end: When the wait for the line ends; `nil` to wait for as long as the terminal is there.
  /// - Returns: `nil` at the end of the input or of the time, or if the line is not UTF-8.
  public func ask(_ question: String, isSecret: Bool = false, until end: ContinuousClock.Instant? = nil) -> String? {
    guard isSecret else { return answer(to: question, until: end) }
    return TerminalMode.with(descriptor, clearing: ECHO) {
      defer { write("\n") }
      return answer(to: question, until: end)
    }
  }

  /// Asks for a line of at most `longest` bytes. The kernel cuts those that it edits itself at 4,095 bytes, so the keys
  /// come one by one: Backspace removes the last character, Control-U all of them, and Control-D ends the input.
  ///
  /// - Returns: `nil` at the end of the input, at `end`, and if the line is longer or is not UTF-8.
  public func askLong(_ question: String, longest: Int, until end: ContinuousClock.Instant? = nil) -> String? {
    TerminalMode.with(descriptor, clearing: ECHO | ICANON) {
      write(TerminalText.printableLines(question))
      defer { write("\n") }
      var line = EditedLine(longest: longest)
      while ReadableInput.wait(for: descriptor, until: end), let bytes = keys(within: 0) {
        for byte in bytes {
          switch line.take(byte) {
          case .show(let text): write(text)
          case .ended: return line.text
          }
        }
      }
      return nil
    }
  }

  private func answer(to question: String, until end: ContinuousClock.Instant?) -> String? {
    write(TerminalText.printableLines(question))
    var line: [UInt8] = []
    var byte: UInt8 = 0
    while true {
      guard ReadableInput.wait(for: descriptor, until: end) else { return nil }
      let count = read(descriptor, &byte, 1)
      if count < 0 && errno == EINTR { continue }
      guard count == 1 else { return line.isEmpty ? nil : String(validating: line, as: UTF8.self) }
      if byte == UInt8(ascii: "\n") { return String(validating: line, as: UTF8.self) }
      line.append(byte)
    }
  }

  /// The rows and columns.
  public var size: (rows: Int, columns: Int) {
    var size = winsize()
    guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_row > 0, size.ws_col > 0 else { return (24, 80) }
    return (Int(size.ws_row), Int(size.ws_col))
  }

  /// Calls `body` while the terminal hands over each key as it is pressed, on a screen of its own. Afterwards it is
  /// what it was, also after a signal.
  public func withScreen(_ body: () throws -> Void) rethrows {
    set { mode in
      mode.c_lflag &= ~tcflag_t(ECHO | ICANON | ISIG | IEXTEN)
      mode.c_iflag &= ~tcflag_t(IXON | ICRNL)
    }
    write("\u{1B}[?1049h\u{1B}[?25l")
    defer {
      write("\u{1B}[?25h\u{1B}[?1049l")
      restore()
    }
    try body()
  }

  /// Waits for keys for at most `milliseconds`. Returns an empty array when none came, and `nil` when the terminal is
  /// gone.
  public func keys(within milliseconds: Int32) -> [UInt8]? {
    var wanted = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    guard poll(&wanted, 1, milliseconds) > 0 else { return [] }
    var buffer = [UInt8](repeating: 0, count: 256)
    let count = read(descriptor, &buffer, buffer.count)
    if count < 0 { return errno == EINTR ? [] : nil }
    return count == 0 ? nil : Array(buffer[..<count])
  }

  private func set(_ change: (inout termios) -> Void) {
    var mode = original
    change(&mode)
    tcsetattr(descriptor, TCSAFLUSH, &mode)
  }

  private func restore() { tcsetattr(descriptor, TCSADRAIN, &original) }
}
