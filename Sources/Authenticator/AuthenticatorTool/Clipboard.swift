internal import ByteCoding
internal import CommandSupport
internal import Foundation
internal import Glibc

/// The clipboard of the desktop, or of the terminal.
enum Clipboard {
  /// Puts `text` there: with wl-copy, xclip or xsel on a desktop that has them, otherwise by the terminal's own
  /// sequence (OSC 52), which also works over SSH.
  ///
  /// - Throws: `.unavailable` if there is neither.
  static func copy(_ text: String, terminal: Terminal? = Terminal()) throws(Failure) {
    let environment = ProcessInfo.processInfo.environment
    var programs: [[String]] = []
    if environment["WAYLAND_DISPLAY"] != nil { programs.append(["wl-copy"]) }
    if environment["DISPLAY"] != nil {
      programs += [["xclip", "-selection", "clipboard"], ["xsel", "--clipboard", "--input"]]
    }
    for program in programs where run(program, input: text) { return }
    guard let terminal else {
      throw Failure(
        .unavailable, "there is no clipboard", hint: "install wl-clipboard or xclip, or leave out --copy")
    }
    terminal.write("\u{1B}]52;c;\(Base64.encode(Array(text.utf8)))\u{07}")
  }

  /// Runs `command` with `input`. Returns whether it was there and succeeded.
  private static func run(_ command: [String], input: String) -> Bool {
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else { return false }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, ends[0], STDIN_FILENO)
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0)
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0)
    var id: pid_t = 0
    var arguments: [UnsafeMutablePointer<CChar>?] = command.map { strdup($0) } + [nil]
    defer { arguments.forEach { free($0) } }
    let code = posix_spawnp(&id, command[0], &actions, nil, &arguments, environ)
    close(ends[0])
    guard code == 0 else {
      close(ends[1])
      return false
    }
    // A code is shorter than what a pipe holds.
    _ = write(ends[1], input, input.utf8.count)
    close(ends[1])
    var status: Int32 = 0
    while waitpid(id, &status, 0) == -1 && errno == EINTR {}
    return status == 0
  }
}
