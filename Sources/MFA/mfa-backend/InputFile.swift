internal import Foundation
internal import Glibc

/// A file that a command is told to read.
enum InputFile {
  /// - Parameter use: what it is, for people: `the keys file`.
  static func read(_ path: String, _ use: String) throws(CommandFault) -> Data {
    try require(path, use)
    guard let bytes = FileManager.default.contents(atPath: path) else {
      throw CommandFault(.noInput, "\(use) \(path) cannot be read")
    }
    return bytes
  }

  /// Reads a secret file.
  ///
  /// - Throws: also if every user of the machine can read it; that its group can is a warning.
  static func readSecret(_ path: String, _ use: String) throws(CommandFault) -> Data {
    var status = stat()
    if stat(path, &status) == 0 {
      guard status.st_mode & 0o004 == 0 else {
        throw CommandFault(
          .configuration, "every user of this machine can read \(use) \(path)",
          hint: "chmod 600 \(path), and put a new one there if others have been there")
      }
      if status.st_mode & 0o040 != 0 { BackendConsole.error("warning: the group of \(use) \(path) can read it") }
    }
    return try read(path, use)
  }

  /// Reports a missing `path` before it is needed.
  static func require(_ path: String, _ use: String) throws(CommandFault) {
    guard access(path, R_OK) == 0 else {
      throw CommandFault(.noInput, "\(use) \(path) cannot be read: \(String(cString: strerror(errno)))")
    }
  }
}
