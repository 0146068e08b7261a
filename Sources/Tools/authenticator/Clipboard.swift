internal import ByteCoding
internal import Commands
internal import Foundation

/// A program that has the clipboard of a desktop.
enum ClipboardProgram: String, CaseIterable {
  case wlCopy = "wl-copy"
  case xclip
  case xsel

  /// Puts its input into the clipboard.
  var writing: [String] {
    switch self {
    case .wlCopy: ["wl-copy"]
    case .xclip: ["xclip", "-selection", "clipboard"]
    case .xsel: ["xsel", "--clipboard", "--input"]
    }
  }

  /// Prints what the clipboard has.
  var reading: [String] {
    switch self {
    case .wlCopy: ["wl-paste", "--no-newline"]
    case .xclip: ["xclip", "-selection", "clipboard", "-out"]
    case .xsel: ["xsel", "--clipboard", "--output"]
    }
  }

  /// Empties the clipboard. `xclip` does so with an empty input.
  var clearing: [String] {
    switch self {
    case .wlCopy: ["wl-copy", "--clear"]
    case .xclip: writing
    case .xsel: ["xsel", "--clipboard", "--clear"]
    }
  }
}

/// The clipboard of the desktop, or of the terminal.
enum Clipboard {
  /// Where a text went.
  enum Place: Equatable {
    /// The desktop's clipboard, whose program took it.
    case desktop(ClipboardProgram)
    /// The terminal, which does not say whether it put it into a clipboard: many ignore the sequence.
    case terminal
  }

  /// How long a clipboard program may take, in seconds. All of them go on in the background.
  static let longest = 5

  /// Puts `text` there: with wl-copy, xclip or xsel on a desktop that has them, otherwise by the terminal's own
  /// sequence (OSC 52), which also works over SSH.
  ///
  /// - Parameters:
  ///   - environment: Says which desktop there is.
  ///   - longest: How many seconds a program may take. Then it is killed, and the next one is tried.
  /// - Throws: `.unavailable` if there is neither.
  static func copy(
    _ text: String, terminal: Terminal? = Terminal(),
    environment: [String: String] = ProcessInfo.processInfo.environment, longest: Int = longest
  ) throws(Failure) -> Place {
    var programs: [ClipboardProgram] = []
    if environment["WAYLAND_DISPLAY"] != nil { programs.append(.wlCopy) }
    if environment["DISPLAY"] != nil { programs += [.xclip, .xsel] }
    for program in programs {
      let run = HelperProgram.run(program.writing, input: Array(text.utf8), keepsOutput: false, within: longest)
      if run?.hasSucceeded == true { return .desktop(program) }
    }
    guard let terminal else {
      throw Failure(
        .unavailable, "there is no clipboard", hint: "install wl-clipboard or xclip, or leave out --copy")
    }
    terminal.write("\u{1B}]52;c;\(Base64.encode(Array(text.utf8)))\u{07}")
    return .terminal
  }

  /// Empties the clipboard if it still has `text`. What the user has copied since stays.
  ///
  /// - Returns: Whether it was emptied.
  @discardableResult
  static func clear(_ text: [UInt8], with program: ClipboardProgram, longest: Int = longest) -> Bool {
    let run = HelperProgram.run(program.reading, input: [], keepsOutput: true, within: longest)
    guard let run, run.hasSucceeded, run.output == text else { return false }
    return HelperProgram.run(program.clearing, input: [], keepsOutput: false, within: longest)?.hasSucceeded == true
  }
}
