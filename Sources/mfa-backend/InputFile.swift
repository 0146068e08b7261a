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

  /// Finds out that `path` is missing before somebody needs it.
  static func require(_ path: String, _ use: String) throws(CommandFault) {
    guard access(path, R_OK) == 0 else {
      throw CommandFault(.noInput, "\(use) \(path) cannot be read: \(String(cString: strerror(errno)))")
    }
  }
}
