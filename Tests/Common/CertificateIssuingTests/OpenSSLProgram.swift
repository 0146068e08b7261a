import Foundation
import TestSupport
import Testing

/// The `openssl` program, as an independent reader of certificates and messages.
enum OpenSSLProgram {
  /// Runs `openssl` and returns its output, and whether its exit code was 0.
  static func run(_ arguments: String...) throws -> (succeeded: Bool, output: String) {
    try withFolder { folder in
      let output = folder + "/output"
      let exit = try ChildProcess.run("/usr/bin/env", ["openssl"] + arguments, writing: output, output)
      return (exit.code == 0, try String(contentsOfFile: output, encoding: .utf8))
    }
  }
}

/// Calls `body` with a new folder, and removes the folder afterwards.
func withFolder<Value>(_ body: (String) throws -> Value) throws -> Value {
  let folder = FileManager.default.temporaryDirectory.path + "/issuing-\(UUID().uuidString)"
  try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
  defer { try? FileManager.default.removeItem(atPath: folder) }
  return try body(folder)
}

func write(_ bytes: some Sequence<UInt8>, to path: String) throws {
  try Data(bytes).write(to: URL(fileURLWithPath: path))
}
