internal import Commands
internal import Foundation
internal import QRCodes
internal import VaultFormats

/// Where QR codes come from that are in no file: the screen, or the output of a command of the user's, such as one for a
/// camera.
///
/// The command is started without a shell, with an empty standard input. Its output is read from a pipe, never from a
/// file.
struct PictureSource {
  /// The seconds that a program has. A person shows a code to a camera in that time.
  var seconds = 60

  /// The programs that write a picture of the whole screen, with the variable of the desktop that they are for.
  private static let screenPrograms = [
    (variable: "WAYLAND_DISPLAY", command: ["grim", "-"]),
    (variable: "DISPLAY", command: ["import", "-window", "root", "png:-"]),
  ]

  /// The texts of the codes that are on the screen.
  ///
  /// - Parameter environment: Says which desktop there is.
  /// - Throws: `.unavailable` if no program makes a picture of it.
  func screenTexts(
    environment: [String: String] = ProcessInfo.processInfo.environment
  ) throws(Failure) -> [String] {
    for (variable, command) in Self.screenPrograms where environment[variable] != nil {
      guard let run = run(command), run.status == 0, Self.isPicture(run.output) else { continue }
      return try PictureReader().texts(in: run.output, at: "the screen")
    }
    throw Failure(
      .unavailable, "no program makes a picture of the screen",
      hint: "install grim (Wayland) or ImageMagick (X11), or save a picture: authenticator scan FILE")
  }

  /// The texts of codes from the standard output of the command `words`. The output is a picture, or the texts themselves,
  /// one a line, as programs write them that find codes on their own.
  func texts(of words: [String]) throws(Failure) -> [String] {
    let name = words.first ?? ""
    guard let run = run(words) else {
      throw Failure(.noInput, "\(name) cannot be started", hint: "no shell is used: name the program itself")
    }
    guard let status = run.status else {
      throw Failure(.unavailable, "\(name) took more than \(seconds) s, or wrote more than is read, and was killed")
    }
    guard status == 0 else {
      let reason = run.signal.map { "ended by signal \($0)" } ?? "exited with \(status >> 8 & 0xFF)"
      throw Failure(.badData, "\(name) \(reason)", hint: "run it in a terminal to see why")
    }
    if Self.isPicture(run.output) { return try PictureReader().texts(in: run.output, at: name) }
    return try Self.lines(run.output, of: name)
  }

  private func run(_ command: [String]) -> HelperProgram.Outcome? {
    HelperProgram.run(command, input: [], keepsOutput: true, within: seconds, mostOutput: QRReader.largest)
  }

  private static func isPicture(_ bytes: [UInt8]) -> Bool {
    bytes.starts(with: [0x89, 0x50, 0x4E, 0x47]) || bytes.starts(with: [0xFF, 0xD8, 0xFF])
  }

  /// The most bytes of the texts of codes. A code has less than 3,000.
  private static let longestText = 1 << 20

  private static func lines(_ bytes: [UInt8], of name: String) throws(Failure) -> [String] {
    guard bytes.count <= longestText, let text = String(validating: bytes, as: UTF8.self),
      text.contains(where: { !$0.isWhitespace })
    else {
      throw Failure(
        .badData, "\(name) wrote neither a picture nor the text of a code",
        hint: "it must write PNG, JPEG or the texts of codes to its standard output")
    }
    return text.split(whereSeparator: \.isNewline).map { $0.trimmingCharacters(in: .whitespaces) }.filter {
      !$0.isEmpty
    }
  }
}

/// Divides a command into words as a shell does, without anything else that a shell does.
enum CommandWords {
  /// The words of `text`, which may be in single or double quotes. A backslash takes the next character as it is, except
  /// in single quotes.
  ///
  /// - Throws: `.usage` if there is no word, or if a quotation mark is left open.
  static func split(_ text: String) throws(Failure) -> [String] {
    var words: [String] = []
    var word: String?
    var quote: Character?
    var isEscaped = false
    for character in text {
      if isEscaped {
        word = (word ?? "") + String(character)
        isEscaped = false
      } else if character == "\\", quote != "'" {
        isEscaped = true
      } else if let open = quote {
        if character == open { quote = nil } else { word = (word ?? "") + String(character) }
      } else if character == "'" || character == "\"" {
        quote = character
        word = word ?? ""
      } else if character.isWhitespace {
        if let word { words.append(word) }
        word = nil
      } else {
        word = (word ?? "") + String(character)
      }
    }
    guard quote == nil, !isEscaped else {
      throw Failure(.usage, "--command: a quotation mark or a backslash at the end is left open")
    }
    if let word { words.append(word) }
    guard words.first?.isEmpty == false else {
      throw Failure(.usage, "--command names no program", hint: "--command 'zbarcam --oneshot --raw'")
    }
    return words
  }
}
