internal import GateRuntime
internal import Glibc

/// Asks for a password on the terminal without echoing it.
enum PasswordPrompt {
  /// Returns the password after it was typed twice.
  static func ask(_ what: String) throws(SallyportError) -> String {
    let terminal = open("/dev/tty", O_RDWR | O_CLOEXEC)
    guard terminal >= 0 else {
      throw SallyportError(
        .usage, error: "no terminal to ask for the password",
        hint: "use --password-file FILE; its first line is the password")
    }
    defer { close(terminal) }
    return try withoutEcho(terminal) { () throws(SallyportError) in
      let first = try line(from: terminal, after: "\(what): ")
      guard try line(from: terminal, after: "Again: ") == first else {
        throw SallyportError(.usage, error: "the two passwords differ", hint: "try again, or use --password-file FILE")
      }
      return first
    }
  }

  /// Blocks signals meanwhile: a process killed here would leave the terminal without echo.
  private static func withoutEcho<Value>(
    _ terminal: Int32, _ body: () throws(SallyportError) -> Value
  ) throws(SallyportError) -> Value {
    var (all, earlier) = (sigset_t(), sigset_t())
    sigfillset(&all)
    pthread_sigmask(SIG_BLOCK, &all, &earlier)
    defer { pthread_sigmask(SIG_SETMASK, &earlier, nil) }
    var shown = termios()
    guard tcgetattr(terminal, &shown) == 0 else { return try body() }
    var hidden = shown
    hidden.c_lflag &= ~tcflag_t(ECHO)
    tcsetattr(terminal, TCSAFLUSH, &hidden)
    defer { tcsetattr(terminal, TCSAFLUSH, &shown) }
    return try body()
  }

  private static func line(from terminal: Int32, after prompt: String) throws(SallyportError) -> String {
    _ = write(terminal, prompt, prompt.utf8.count)
    defer { _ = write(terminal, "\n", 1) }
    var bytes: [UInt8] = []
    var byte: UInt8 = 0
    while bytes.count < 1024 {
      let count = read(terminal, &byte, 1)
      if count < 0, errno == EINTR { continue }
      guard count == 1 else { break }
      if byte == UInt8(ascii: "\n") {
        guard let text = String(validating: bytes, as: UTF8.self) else { break }
        return text
      }
      bytes.append(byte)
    }
    throw SallyportError(.usage, error: "no password was typed", hint: "try again, or use --password-file FILE")
  }
}
