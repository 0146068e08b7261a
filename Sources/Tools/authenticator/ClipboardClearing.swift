internal import ArgumentParser
internal import ByteCoding
internal import Commands
internal import Foundation
internal import Glibc
internal import ProcessSignals

/// When the clipboard is cleared after a code was copied.
struct ClearingOptions: ParsableArguments {
  /// The longest time in seconds: an hour.
  private static let longest = 3600

  @Option(
    help: ArgumentHelp(
      "Clear the clipboard after so many seconds if it still has the code, or off.", valueName: "seconds"))
  var clearAfter = "30"

  /// The seconds, 1 to 3600; `nil` if the clipboard is not cleared.
  func seconds() throws(Failure) -> Int? {
    if clearAfter == "off" { return nil }
    guard let seconds = Int(clearAfter), (1...Self.longest).contains(seconds) else {
      throw Failure(.usage, "--clear-after \(clearAfter): 1 to \(Self.longest) seconds, or off")
    }
    return seconds
  }
}

/// Clears the clipboard later, in a process of its own: the command that copied the code has exited by then.
///
/// The process gets the code on its standard input and has it in its memory alone. It waits once and exits, whatever
/// the clipboard has.
struct ClipboardClearing {
  /// This program.
  var program = "/proc/self/exe"
  /// How long the code may stay in the clipboard, in seconds; `nil` for as long as the user leaves it there.
  let seconds: Int?

  /// What a person is told of a code that went to `place`, and will be cleared from there if that is possible.
  func begin(_ code: String, at place: Clipboard.Place) -> String {
    guard case .desktop(let clipboard) = place else {
      // Few terminals say what their clipboard has, and what the user has copied since must stay.
      return seconds == nil ? "sent to the terminal" : "sent to the terminal, where it is not cleared"
    }
    guard let seconds else { return "copied" }
    let command = [program, ClearClipboardCommand.name, "--after", "\(seconds)", "--with", clipboard.rawValue]
    // The process takes its input at once, starts another one that waits, and exits.
    let run = HelperProgram.run(command, input: Array(code.utf8), keepsOutput: false, within: Clipboard.longest)
    return run?.hasSucceeded == true ? "copied, cleared after \(seconds) s" : "copied, and cannot be cleared later"
  }
}

extension ClipboardProgram: ExpressibleByArgument {}

/// What `ClipboardClearing` starts: clears the clipboard after a time. Not for people.
struct ClearClipboardCommand: ParsableCommand {
  static let name = "clear-clipboard"
  static let configuration = CommandConfiguration(
    commandName: name, abstract: "Clear the clipboard later, for another command.",
    discussion: """
      Example:
        authenticator clear-clipboard --after 30 --with xclip <code.txt
      """, shouldDisplay: false)

  /// The longest code in bytes, and more than that.
  private static let longest = 64

  @Option(help: "The seconds to wait, 1 to 3600.")
  var after: Int

  @Option(help: "The program of the clipboard.")
  var with: ClipboardProgram

  @Flag(help: "Wait in this process.")
  var waits = false

  func run() throws {
    guard (1...3600).contains(after) else { throw Failure(.usage, "--after \(after): 1 to 3600") }
    let code = try InputFile.read("-", largest: Self.longest) ?? []
    guard waits else {
      try startWaiting(code)
      return
    }
    setsid()
    sleep()
    Clipboard.clear(code, with: with)
  }

  /// Starts the process that waits. Its parent exits at once, so that no command waits for it and no terminal ends it.
  private func startWaiting(_ code: [UInt8]) throws(Failure) {
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else { throw Failure(.unavailable, "there is no pipe") }
    let command = ["/proc/self/exe", Self.name, "--waits", "--after", "\(after)", "--with", with.rawValue]
    let id = StartedProgram.start(command, reading: ends[0], writing: nil)
    close(ends[0])
    // A pipe has room for a code.
    let count = code.withUnsafeBytes { Glibc.write(ends[1], $0.baseAddress, $0.count) }
    close(ends[1])
    guard id != nil, count == code.count else {
      throw Failure(.unavailable, "the process that waits cannot be started")
    }
  }

  /// Waits until `after` seconds have passed, with those in which the machine sleeps.
  private func sleep() {
    var end = timespec()
    clock_gettime(CLOCK_BOOTTIME, &end)
    end.tv_sec += after
    while clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, &end, nil) == EINTR {}
  }
}
