internal import AppAttest
internal import ArgumentParser
internal import ByteCoding
internal import Commands
internal import GateRuntime
internal import Glibc

/// The input file, the app and the output format.
struct VerifyInput: ParsableArguments {
  @Argument(
    help: """
      The file: the object in binary, or in base64 or base64url, with or without padding and line breaks; the JSON \
      body of a registration; or the headers of an assertion, as `attest headers` prints them. - is standard input.
      """)
  var file: String

  @Option(
    name: .customLong("app-id"),
    help: ArgumentHelp(
      "The app: team identifier (ten of A-Z 0-9), a dot, bundle identifier.", valueName: "team.bundle"),
    transform: VerifyArgument.appID)
  var app: AppID

  @Flag(help: "Print the steps and the parsed fields as JSON.")
  var json = false

  /// Reads the file and prints the result of `explain`, which may add a hint. Exits with 1 unless every rule passes.
  func report(
    on kind: VerifyContent.Kind, at instant: Timestamp?,
    _ explain: (VerifyContent, AppID) throws(Failure) -> (explanation: Explanation, hint: String?)
  ) throws {
    let content = try VerifyContent(try InputFile(path: file).beginning(), of: kind, named: file)
    let (explanation, hint) = try explain(content, app)
    try VerifyReport(kind: kind.rawValue, instant: instant, explanation: explanation)
      .conclude(asJSON: json, hint: hint)
  }

  /// Decodes `content` if it is only base64, in any form that the gate accepts; otherwise returns it unchanged. White
  /// space counts for nothing: text is often copied with indents.
  ///
  /// This is unambiguous: each of the three formats starts with bytes of which at least one is not text.
  static func unarmored(_ content: [UInt8]) -> [UInt8] {
    // Longer content was not read to its end and is too long for every format.
    guard content.count <= InputFile.longest else { return content }
    let isSpace: (UInt8) -> Bool = { [0x20, 0x09, 0x0A, 0x0D].contains($0) }
    return Base64.decode(anyForm: String(decoding: content.filter { !isSpace($0) }, as: UTF8.self)) ?? content
  }
}

/// A file, or standard input.
struct InputFile {
  /// More bytes than any of the formats can have, including base64 and line breaks.
  static let longest = 1 << 20

  /// `-` is standard input.
  let path: String

  /// Reads the whole file. Throws if it has more than `longest` bytes.
  func read() throws(Failure) -> [UInt8] {
    let content = try beginning()
    guard content.count <= Self.longest else {
      throw Failure(
        .badData, "\(TerminalText.printable(path)) is larger than 1 MiB",
        hint: "check that this is the right file; attestations, assertions and receipts are smaller")
    }
    return content
  }

  /// Reads the whole file, or somewhat more than `longest` bytes of a longer one.
  func beginning(longest: Int = InputFile.longest) throws(Failure) -> [UInt8] {
    let descriptor = path == "-" ? 0 : open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw failure() }
    defer { if descriptor != 0 { close(descriptor) } }
    var content: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65536)
    while content.count <= longest {
      let count = Glibc.read(descriptor, &buffer, buffer.count)
      if count < 0 && errno == EINTR { continue }
      guard count >= 0 else { throw failure() }
      if count == 0 { break }
      content += buffer.prefix(count)
    }
    return content
  }

  private func failure() -> Failure {
    Failure(
      .noInput, "\(TerminalText.printable(path)): \(String(cString: strerror(errno)))",
      hint: "name a readable file, or - for standard input")
  }
}
