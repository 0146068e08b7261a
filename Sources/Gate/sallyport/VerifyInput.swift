internal import AppAttest
internal import ArgumentParser
internal import ByteCoding
internal import GateRuntime
internal import Glibc

/// What is to be explained, and how.
struct VerifyInput: ParsableArguments {
  @Argument(help: "The file: binary, or base64 with or without line breaks; - is standard input.")
  var file: String

  @Option(
    name: .customLong("app-id"),
    help: ArgumentHelp(
      "The app: team identifier (ten of A-Z 0-9), a dot, bundle identifier.", valueName: "team.bundle"),
    transform: VerifyArgument.appID)
  var app: AppID

  @Flag(help: "Write the steps and what was read as JSON.")
  var json = false

  /// Reads the file, prints what `explain` makes of it, and ends with 1 unless all of it holds.
  func report(
    on kind: String, at instant: Timestamp?,
    _ explain: ([UInt8], AppID) throws(SallyportError) -> Explanation
  ) throws {
    do throws(SallyportError) {
      let content = try InputFile(path: file).beginning()
      let explanation = try explain(Self.unarmored(content), app)
      let report = VerifyReport(kind: kind, instant: instant, explanation: explanation)
      Console.print(json ? report.json : report.text)
      guard let broken = explanation.firstBroken else { return }
      throw SallyportError(
        .problemsFound, error: "the \(kind) does not hold: \(broken.name): \(TerminalText.printable(broken.detail))",
        hint: "the steps above say what else does and does not hold")
    } catch {
      throw error.told()
    }
  }

  /// The bytes that base64 stands for, if `content` is nothing but base64; else `content` itself.
  ///
  /// There is nothing to confuse: each of the three formats begins with bytes of which at least one is no text.
  static func unarmored(_ content: [UInt8]) -> [UInt8] {
    // Not read to its end, so that what it says there is not known; and too long to be anything.
    guard content.count <= InputFile.longest else { return content }
    let isSpace: (UInt8) -> Bool = { [0x20, 0x09, 0x0A, 0x0D].contains($0) }
    return Base64.decode(String(decoding: content.filter { !isSpace($0) }, as: UTF8.self)) ?? content
  }
}

/// A file, or standard input.
struct InputFile {
  /// More bytes than any of the formats may have, base64 and line breaks included.
  static let longest = 1 << 20

  /// `-` is standard input.
  let path: String

  /// All of it; what is longer than `longest` is refused.
  func read() throws(SallyportError) -> [UInt8] {
    let content = try beginning()
    guard content.count <= Self.longest else {
      throw SallyportError(
        .badData, error: "\(TerminalText.printable(path)) has more than 1 MiB",
        hint: "see that it is the right file: nothing that is read here is as long")
    }
    return content
  }

  /// All of it, or `longest` bytes and some more of what is longer.
  func beginning() throws(SallyportError) -> [UInt8] {
    let descriptor = path == "-" ? 0 : open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw failure() }
    defer { if descriptor != 0 { close(descriptor) } }
    var content: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65536)
    while content.count <= Self.longest {
      let count = Glibc.read(descriptor, &buffer, buffer.count)
      if count < 0 && errno == EINTR { continue }
      guard count >= 0 else { throw failure() }
      if count == 0 { break }
      content += buffer.prefix(count)
    }
    return content
  }

  private func failure() -> SallyportError {
    SallyportError(
      .noInput, error: "\(TerminalText.printable(path)): \(String(cString: strerror(errno)))",
      hint: "name a file that you may read, or -")
  }
}
