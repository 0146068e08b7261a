internal import ByteCoding
internal import Commands
internal import Foundation

/// The clipboard of the desktop, or of the terminal.
enum Clipboard {
  /// Where a text went.
  enum Place {
    /// The desktop's clipboard, whose program took it.
    case desktop
    /// The terminal, which does not say whether it put it into a clipboard: many ignore the sequence.
    case terminal

    /// What a person is told.
    var words: String {
      switch self {
      case .desktop: "copied"
      case .terminal: "sent to the terminal"
      }
    }
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
    var programs: [[String]] = []
    if environment["WAYLAND_DISPLAY"] != nil { programs.append(["wl-copy"]) }
    if environment["DISPLAY"] != nil {
      programs += [["xclip", "-selection", "clipboard"], ["xsel", "--clipboard", "--input"]]
    }
    for program in programs {
      let run = HelperProgram.run(program, input: Array(text.utf8), keepsOutput: false, within: longest)
      if run?.hasSucceeded == true { return .desktop }
    }
    guard let terminal else {
      throw Failure(
        .unavailable, "there is no clipboard", hint: "install wl-clipboard or xclip, or leave out --copy")
    }
    terminal.write("\u{1B}]52;c;\(Base64.encode(Array(text.utf8)))\u{07}")
    return .terminal
  }
}
